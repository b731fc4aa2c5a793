"""What people write: the ServiceDefinition and the platform file."""
