"""Every diagnostic code with its page: what `render explain` prints and docs/errors.md holds."""

from __future__ import annotations

from typing import NamedTuple


class Page(NamedTuple):
    """What there is to know about a code."""

    title: str
    severity: str
    text: str


_E, _W = "error", "warning"

CODES: dict[str, Page] = {
    "R001": Page(
        "A file or folder cannot be read",
        _E,
        "Every file of the catalog is read or the run fails: a file that is skipped would be a service that Flux deletes. "
        "The file may be unreadable, not UTF-8, or a symbolic link out of the catalog. Names are written into the first line of "
        "generated files, so a name with control characters, line breaks, or bytes that are not UTF-8 is refused too.",
    ),
    "R002": Page(
        "Duplicate key",
        _E,
        'Two keys of one mapping are the same, by their text or by what a YAML reader makes of them (`1` and `"1"`). '
        "Readers keep one of the two, and not all the same one. A merge key (`<<`) that is overridden is no duplicate.",
    ),
    "R003": Page(
        "Not valid YAML",
        _E,
        "The file does not parse. The place is where the parser gave up; the fault is there or just above.",
    ),
    "R004": Page(
        "A tag that Kubernetes does not have",
        _E,
        "Custom tags (`!secret`) and tags that change a value's type are lost or refused on the way to the cluster. "
        "`!!str` is accepted, and written as quotes.",
    ),
    "R005": Page(
        "Too large",
        _E,
        "A file over 1 MiB, nesting over 100 levels, or aliases that unfold into more than 100,000 values. "
        "No definition is that large; something else is in the catalog, or an alias bomb.",
    ),
    "R006": Page(
        "An alias without its anchor",
        _E,
        "`*name` repeats a value marked `&name` above it in the same document, and never one that contains it.",
    ),
    "R007": Page(
        "A key that is no string",
        _E,
        "Keys must be single values that every reader takes for a string, on one line, of at most 128 bytes: "
        "longer keys take another form when the image bot rewrites the file.",
    ),
    "R008": Page(
        "Two readers take a value differently",
        _W,
        "A file in Git is read by kyaml (the kustomize build) and later by sigs.k8s.io/yaml (postBuild, Helm). They differ "
        "on some plain scalars: `yes`, `0o17`, `2024-07-01`. The value is written as it is; quote it if it is text.",
    ),
    "R009": Page(
        "A value that kustomize cannot write",
        _E,
        "kustomize writes its output by way of JSON, which has no infinities and no `.nan`, and reads it once more, where control "
        "characters from DEL on are refused, escaped or not. The build of the whole tree would fail.",
    ),
    "R101": Page(
        "Unknown field",
        _E,
        "The field is not part of the form. A misspelled field that is ignored in silence would be a setting that is not there.",
    ),
    "R102": Page("A field is missing", _E, "The form needs the field, or the object cannot be rendered without it."),
    "R103": Page(
        "A value of another type",
        _E,
        "Also a plain scalar in a string field that a YAML reader would take for a number, boolean, null or date: `1.20` is "
        "1.2 to one of them. Quote it.",
    ),
    "R104": Page(
        "A value that is not allowed",
        _E,
        "The value does not have the field's pattern, length, range, or is none of its choices.",
    ),
    "R105": Page(
        "The platform file",
        _E,
        "There must be one platform file with one document: an absent file says nothing, which is not the same as an empty table.",
    ),
    "R201": Page(
        "A dependency that cannot be",
        _E,
        "The service is not in the catalog, is disabled, or Flux cannot express the dependency. `dependsOn` works between "
        "HelmReleases; with `flux.kustomizations: service` the Flux Kustomizations carry the rest.",
    ),
    "R202": Page(
        "Services depend on each other in a circle", _E, "Each waits for the next to be ready, so none ever is."
    ),
    "R203": Page(
        "Two things with one name",
        _E,
        "Service names are unique in the catalog, and no two objects of the tree may have one group, kind, namespace and "
        "name: kustomize refuses them, or the later one wins.",
    ),
    "R204": Page(
        "The chart source",
        _E,
        "A chart comes from one source (`repository`, `url`, `git` or `existingSource`), in one exact version unless it says `versionRange`.",
    ),
    "R205": Page(
        "Not an image reference",
        _E,
        "A reference is `[registry/]name[:tag][@digest]`, in lower case, without a scheme.",
    ),
    "R206": Page(
        "`update` without an image",
        _E,
        "The service's `update` concerns `source.image`; further images have an `update` of their own.",
    ),
    "R207": Page(
        "An image that stands nowhere",
        _E,
        "The image is declared and no rendered object holds it, so nothing would ever run or update it.",
    ),
    "R208": Page(
        "A path or shape that cannot be",
        _E,
        "`at` is a path of keys with dots between, `[0]` or `[name=app]` for list items; keys that hold dots are quoted.",
    ),
    "R209": Page(
        "No image at the path", _E, "Without `ref` the image is read from `values` at `at`, and there is none."
    ),
    "R210": Page(
        "Two images of one repository",
        _E,
        "A post-renderer entry sets the version by repository. Two images of one release with the same repository, one of "
        "them written by such an entry, would both get it.",
    ),
    "R211": Page(
        "Another value in the image's place",
        _E,
        "What is written at `at` meets a different value, or one of another type. One of the two is a mistake.",
    ),
    "R212": Page(
        "The service's delivery",
        _E,
        "A service is a chart, a plain workload, or raw objects; fields of one do not go with another.",
    ),
    "R213": Page(
        "Not supported yet",
        _E,
        "The contract has it and this version does not render it. It is refused rather than left out in silence.",
    ),
    "R214": Page("A file outside the repository", _E, "A build must not depend on the network; vendor the file."),
    "R215": Page(
        "A variable of Flux's postBuild",
        _E,
        "With `defaults.substitute` every `${X}` must be declared or carry a default: Flux 2.9 fails on an undefined one, and "
        "earlier releases put an empty text in its place. Without it, `$${` (a warning) is an escape that nothing undoes.",
    ),
    "R216": Page(
        "What the image bot cannot rewrite",
        _E,
        "The bot rewrites whole files through kyaml. Annotations in which kyaml keeps its own notes make its run fail, and "
        "the items of a `List` end up in files of their own; a file with either is never updated as it should.",
    ),
    "R217": Page(
        "A catalog without services",
        _W,
        "Nothing in the catalog means that everything in the tree is deleted. That is far more often another folder, or a "
        "checkout that is not complete, than meant; a service with `enabled: false` says that it is.",
    ),
    "R218": Page(
        "A setter marker in the catalog",
        _W,
        "The image bot of the cluster edits files below its `update.path`, which is the output tree; a marker elsewhere does "
        "nothing. `update` of the service is what writes markers, and `render sync` brings versions back into the catalog.",
    ),
    "R220": Page(
        "What does not go with a virtual machine",
        _E,
        "`kind: vm` is delivered by `vm`, not by a chart or a workload. It updates itself in the guest, so nothing moves its "
        "image: of `update` it knows `cadence` and `pin`.",
    ),
    "R221": Page(
        "A disk of a virtual machine",
        _E,
        "A disk has a name of its own and exactly one source; an image that it is made of is `main` (`source.image`) or a "
        "key of `images`; a DataVolume is filled from exactly one source.",
    ),
    "R222": Page(
        "A network of a virtual machine",
        _E,
        "There is at most one network of the pod, bound by `masquerade` or `bridge`; others are named by `multus` and bound "
        "by `bridge` or `sriov`. Names and MAC addresses differ.",
    ),
    "R223": Page(
        "What cloud-init is given",
        _E,
        "cloud-init passes over what it does not understand, and the guest starts without it. A key of `userData` that the "
        "service has a field for is written there only.",
    ),
    "R224": Page(
        "A secret in plain",
        _E,
        "User data is committed to Git. A private key, a password or its hash there is refused; keep the user data in a Secret "
        "of your own that SOPS or an operator fills, and name it with `cloudInit.secretRef`. A file that only looks like it "
        "holds a password is a warning.",
    ),
    "R225": Page(
        "Updates in the guest",
        _E,
        "An `update` of a virtual machine becomes a systemd timer in the user data, with what the distribution updates itself "
        "with; so `vm.os` must be said, and the user data must be ours.",
    ),
    "R226": Page(
        "A field of the machine with a place of its own",
        _E,
        "`vm.spec` holds the fields of a VirtualMachineInstance that the service has no field for.",
    ),
    "R227": Page(
        "A machine that cannot leave its node",
        _E,
        "With `evictionStrategy: LiveMigrate` a node is drained only when its machines have moved away. A machine on a volume "
        "that one node mounts at a time, or bridged to the pod's network, cannot move.",
    ),
    "R228": Page(
        "The hardware of a virtual machine",
        _E,
        "A size without a unit is in bytes. Secure boot, and variables that are kept, need UEFI.",
    ),
    "R241": Page(
        "The output in the catalog",
        _E,
        "The catalog is read at any depth, and what `render` writes is no service. Catalog and output root lie beside each "
        "other; `root: .` does not get in the way of a catalog that lies in a folder of its own.",
    ),
    "R242": Page(
        "Commits that Git would refuse",
        _E,
        "The author of the bot's commits and the branches that it reads and writes take the form that Git gives them. A text "
        "with a variable of Flux's postBuild is judged in the cluster only.",
    ),
    "R301": Page(
        "A fault in a template",
        _E,
        "A template uses a name that the plan does not give it, or a line that is not one of its forms.",
    ),
    "R401": Page(
        "A Flux object that the cluster would refuse",
        _E,
        "The field is newer than `flux.version`, or breaks a rule of the object's API.",
    ),
    "R402": Page(
        "A field with a place of its own",
        _E,
        "`release` holds the HelmRelease fields that the service has no field for.",
    ),
    "R403": Page(
        "The automatic rollback is defeated",
        _E,
        "By default Flux does not roll a failed upgrade back. An `update` with `autoRollbackOnFailedHealth` sets what makes it; "
        "a setting, strategy or missing probe that takes the gate away is refused, and so is a timeout shorter than the "
        "probes in `values` allow.",
    ),
    "R404": Page(
        "A release name that is too long",
        _E,
        "Helm takes 53 characters; Flux shortens longer ones to a name with a hash.",
    ),
    "R405": Page("A volume", _E, "A volume has exactly one source, and a claim has a size."),
    "R501": Page(
        "One Flux Kustomization for very many services",
        _W,
        "kustomize takes quadratic time in the number of folders. Use one Kustomization a namespace, or a service.",
    ),
    "R502": Page(
        "A path outside the tree",
        _E,
        "Paths of the platform file stay inside the repository and the folders they belong to.",
    ),
    "R503": Page(
        "A generated file was edited by hand",
        _E,
        "The text does not fit the digest in the header (what the image bot writes does not change it), and its objects or "
        "markers are not those that would be written: other line ends or indents alone are no edit. Bring the change into "
        "the catalog, or give it up with `--force PATH`.",
    ),
    "R504": Page(
        "A file that is not generated is in the way",
        _E,
        "A file without the header belongs to a person and is never overwritten, unless named by `--force PATH`.",
    ),
    "R505": Page(
        "Conflict markers in a generated file",
        _E,
        "Check out either side, then build: the file is made anew from the catalog.",
    ),
    "R506": Page("A symbolic link in the tree", _E, "No write follows a link: it could leave the output root."),
    "R507": Page(
        "A file that the catalog names is missing",
        _E,
        "Files under `kustomize` are yours, beside the rendered ones; a missing one fails the build of the whole tree.",
    ),
    "R508": Page(
        "The output tree cannot be read or written",
        _E,
        "The root cannot be made or locked, something else stands in the place of a file or folder, or a call of the system "
        "fails. Each file is replaced atomically, so those before the fault are new, those after it old, none half-written.",
    ),
    "R509": Page(
        "The override table is gone",
        _E,
        "The committed tree carries a table and the platform file has no `registries.imageOverrides`. Absent is not empty: say "
        "`[]` if there is to be none.",
    ),
    "R510": Page(
        "The bot's value against the catalog's",
        _E,
        "A committed value at a setter marker would be lowered, or replaced by one that is not provably newer. "
        "`render sync` writes the committed value into the catalog; `--reset-tags SERVICE` takes the catalog's.",
    ),
    "R511": Page(
        "An upgrade that is a reinstall",
        _E,
        "A changed release name, namespace or chart name makes Flux uninstall and install again, and a plain "
        "workload of another name, namespace or kind gets new volumes; a virtual machine of another name loses its DataVolumes. Say "
        "`--allow-reinstall SERVICE` if that is wanted.",
    ),
    "R512": Page(
        "A version that cannot be written into the catalog",
        _E,
        "`render sync` changes only the scalars that hold a version. A file in which an anchor repeats one elsewhere is "
        "left alone, and the others are written. Where the catalog would not build with a version, nothing is "
        "written; `--only NAME` writes those of other services.",
    ),
    "R513": Page(
        "A marker that names no policy",
        _W,
        "A file of yours in the tree has a setter marker for a policy that is neither rendered nor in the tree. The image bot "
        "leaves such a value as it is and reports nothing, so the version stands still. With `--no-image-automation` there "
        "are no policies, and markers are not looked at.",
    ),
    "R514": Page(
        "A policy that no marker names",
        _W,
        "An ImagePolicy of yours in the tree selects a version that nothing takes: no marker in the tree names it. Markers "
        "outside the tree are not seen.",
    ),
    "R515": Page(
        "A file that no kustomization lists",
        _W,
        "A YAML file lies beside generated ones, and the kustomization.yaml there does not list it, so Flux does not apply it. "
        "Name it under `kustomize` of the service. Hidden files, and folders without a generated kustomization.yaml, are not "
        "looked at.",
    ),
    "R516": Page(
        "Services move to another Flux Kustomization",
        _E,
        "Another `flux.kustomizations` or `flux.namespace`, or with `service` another name of a service, has other Flux "
        "Kustomizations apply what runs. A Kustomization deletes what it no longer holds, except what another one has taken "
        "over by then, and nothing orders the two: releases may be uninstalled. Suspend the present Kustomizations, build "
        "with `--allow-reinstall NAME` for each service, push, and resume them when the new ones are ready.",
    ),
    "R517": Page(
        "An empty catalog would delete everything",
        _E,
        "The catalog holds no service, not even a disabled one, and the tree holds releases or workloads. A service with "
        "`enabled: false` says that nothing is meant.",
    ),
    "R518": Page(
        "The tree has changed while it was built",
        _E,
        "A file that holds versions of the image bot was written after they had been read, by a pull for example. Nothing is "
        "written; run the command again.",
    ),
    "R601": Page(
        "The override table",
        _E,
        "Entries are kustomize `images` entries: `name` and at least one of `newName`, `newTag`, `digest`, all strings. The "
        "name is a regular expression to kustomize, matched against the reference as the manifest spells it.",
    ),
    "R602": Page(
        "An image post-renderer that fails",
        _E,
        "An entry whose name is no regular expression makes kustomize panic, and the release fail.",
    ),
    "R603": Page(
        "An override decides the version",
        _W,
        "An entry with `newTag` or `digest` replaces whatever tag the bot would write, so the image gets no policy and no marker.",
    ),
    "R604": Page(
        "Overrides do not reach hooks",
        _W,
        "Before Flux 2.9 (2.8.0 to 2.8.5 aside) chart hooks do not pass the post-renderers.",
    ),
    "R605": Page(
        "An object that kustomize's image rules cannot take",
        _W,
        "A scalar where kustomize expects a pod template fails its run. `build` writes the object without overrides and warns; "
        "`override --manifest` and `flux` can only refuse.",
    ),
    "R606": Page(
        "Two credentials match equally",
        _E,
        "The entry with the longest path wins; two of the same length are a mistake.",
    ),
    "R607": Page(
        "An override applied twice",
        _E,
        "A reference that is written as it is after the table passes the table again in the release, and must survive it.",
    ),
    "R608": Page(
        "Chained overrides", _W, "Entries run one after another: a later one sees the names that an earlier one wrote."
    ),
    "R609": Page(
        "An override that does not do what it seems to",
        _W,
        "kustomize compares names as they are spelled, and takes them for regular expressions. An entry may miss another "
        "spelling of the same image, hit another image, drop the digest of one, or not reach one that stands in a "
        "container's environment or arguments.",
    ),
    "R610": Page(
        "A HelmRelease without the override table",
        _E,
        "`check --tree` looks at every HelmRelease of a folder. Its last post-renderer must be the table of the platform "
        "file, or its images are pulled by other rules. A file that names a HelmRelease and cannot be read is a warning.",
    ),
    "R611": Page(
        "A write credential that is not encrypted",
        _E,
        "`imageAutomation.secretFile` names a Secret in the tree that SOPS has not encrypted, or a file that cannot be read. "
        "Encrypt it before it is committed; a credential that was committed in plain text is to be replaced.",
    ),
    "R612": Page(
        "A write credential that nothing decrypts",
        _E,
        "The Secret is encrypted with SOPS, and the Flux Kustomizations do not say how to decrypt it: Flux refuses such a "
        "Secret, and the whole folder with it.",
    ),
    "R701": Page(
        "Not a version range",
        _E,
        "Ranges have the grammar of Masterminds semver: `>=1.2 <2`, `1.x`, `~1.4`, `1.2 - 1.4`, `^1 || ^3`.",
    ),
    "R702": Page(
        "The range and the current tag",
        _E,
        "The current tag must lie in its own range. A range wholly above it is a warning (the first update leaves the current "
        "line), one wholly below it an error.",
    ),
    "R703": Page(
        "No policy fits the tag",
        _E,
        "The channel cannot be derived from the current tag, or the policy would not select it. The hint names what to write.",
    ),
    "R704": Page(
        "The order of a policy",
        _E,
        "A policy whose order cannot be right: `desc` selects the lowest, hashes have no order, numbers beyond 2^53 are not exact.",
    ),
    "R705": Page(
        "The tag filter",
        _E,
        "The pattern is RE2, searched unanchored; `extract` names its groups, without braces, which Flux's substitution would take.",
    ),
    "R706": Page(
        "The digest of an automated image",
        _E,
        "Following a digest takes a policy that reflects it, and a marker that writes it: all or none. A digest that is left "
        "behind by a moving tag would run for ever.",
    ),
    "R707": Page(
        "The cadence",
        _E,
        "A duration of at least a minute, or a cron expression, of which the shortest gap between firings is taken.",
    ),
    "R708": Page(
        "A policy that the bot does not follow",
        _W,
        "The bot follows the policies that `imageAutomation.policySelector` selects, and says nothing of others. Labels of its "
        "`matchLabels` are put on every ImagePolicy; a service that gives one of them another value, or `matchExpressions` "
        "that do not hold, leave a policy out.",
    ),
    "R801": Page(
        "An override of Flux's images that matches nothing",
        _E,
        "`render flux` knows every image of the manifest that it rewrites, so an entry without one is a mistake: a misspelled "
        "name, an image that this Flux does not have, or one that an entry above it has renamed already.",
    ),
    "R802": Page(
        "Overrides on the command line",
        _E,
        "`--overrides` takes one list in strict JSON: maps of strings with the fields of kustomize's `images`, and nothing after "
        "the list.",
    ),
    "R803": Page(
        "An image that cannot be rewritten where it stands",
        _E,
        "`render flux` changes the text of images and nothing else. An image that an alias repeats where none is meant, that spans "
        "lines of a text block, or that would be a number without quotes, has to be written out first.",
    ),
    "R804": Page(
        "A version that Renovate would not see, or see wrongly",
        _W,
        "`render renovate` runs the configuration that it prints on the catalog, as Renovate will. Its regular expressions read "
        "block style and mappings in braces on one line. A version in another form, or text that looks like a version, is "
        "told here.",
    ),
    "R805": Page(
        "A new file that is there already",
        _E,
        "`render new` and `render init` only add files. With one in the way nothing is written.",
    ),
    "R901": Page(
        "Part of a release",
        _W,
        "A HelmRelease without a chart, or one that a kustomization names as a patch, is merged into another one when the "
        "tree is built. There is nothing to render it from, so `import` leaves it where it is.",
    ),
    "R902": Page(
        "An object that is there twice",
        _W,
        "Two objects of one kind, namespace and name are mostly those of two clusters, and a catalog describes one at a time. "
        "`import` takes the first, and lists the other. So it is with an object that overlays put into several namespaces: it "
        "becomes one definition.",
    ),
    "R903": Page(
        "A chart source that was not read",
        _W,
        "The release names a source object that is in none of the paths. Its definition says `existingSource`: it is rendered "
        "as it was, and works as long as something else brings the source.",
    ),
    "R904": Page(
        "An object that cannot be a service",
        _E,
        "A definition of it would be refused, also one without updates and images; the cause is what `build` would say. "
        "The other objects are imported.",
    ),
    "R905": Page(
        "Something gets lost",
        _E,
        "What is rendered from the new definition does not say all that the object said. The report names each path; what has "
        "only another spelling, or is a default of the API, is no loss.",
    ),
    "R906": Page(
        "The platform file lacks something",
        _W,
        "A platform file that exists is used and never written over. The definitions need what is shown: add it before `build`.",
    ),
    "R907": Page(
        "A file is in the way",
        _E,
        "An import only adds files. With one in the way nothing is written.",
    ),
    "R908": Page(
        "Nothing to import",
        _E,
        "`import` looks for HelmReleases, and for Deployments and StatefulSets whose image a setter marker keeps up to date. "
        "Hidden folders, charts, and what is no YAML are passed over.",
    ),
    "R909": Page(
        "A file cannot be written",
        _E,
        "A folder is not writable, or a file stands where a folder should. Files that were written before are complete.",
    ),
    "R910": Page(
        "An object that nothing applies",
        _W,
        "The kustomization of its folder does not list the file, or no Flux Kustomization that was read reaches it: it is in "
        "the repository and not in the cluster. Its definition would bring it there, unless it says `enabled: false`.",
    ),
}


def page(code: str) -> str:
    """Return the page of a code as Markdown; raises KeyError for an unknown one."""
    entry = CODES[code]
    return f"## {code}: {entry.title}\n\nSeverity: {entry.severity}.\n\n{entry.text}\n"


def document() -> str:
    """Return docs/errors.md."""
    families = {
        "R0": "YAML",
        "R1": "Schema",
        "R2": "Catalog",
        "R3": "Templates",
        "R4": "Flux and Kubernetes objects",
        "R5": "Output tree",
        "R6": "Image overrides",
        "R7": "Update policies",
        "R8": "Flux's own images, Renovate, new files",
        "R9": "Import",
    }
    out = ["# Diagnostics\n", "What `render explain CODE` prints. Codes are never given another meaning.\n"]
    family = ""
    for code in CODES:
        if code[:2] != family:
            family = code[:2]
            out.append(f"## {family}: {families[family]}\n")
        out.append(f"#{page(code)}")
    return "\n".join(out)
