"""One service and the platform in, every decision about its objects out; nothing here formats text."""
