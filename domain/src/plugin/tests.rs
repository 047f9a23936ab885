//! Tests of plugin manifests, settings, permissions and archive names.

use serde_json::{Value, json};

use super::*;

/// The manifest that the golden answers of the reference import.
fn sample() -> Value {
    json!({
        "name": "My Plugin", "version": "1.2.3", "description": "d", "author": "me", "help_url": "http://e/",
        "license": "MIT", "min_dispatcharr_version": "v0.19.0", "maintainers": ["a"],
        "fields": [
            { "id": "n", "label": "N", "type": "number", "default": 5, "placeholder": "x" },
            { "id": "sel", "label": "S", "type": "select", "default": "a",
              "options": [{ "value": "a", "label": "A" }, { "value": 2, "label": "B" }] },
            { "id": "on", "type": "boolean", "default": false },
            { "id": "key", "type": "string", "input_type": "password", "default": "p" },
            { "id": "notes", "type": "text" },
            { "type": "info", "label": "Read this", "description": "…" },
            { "id": "new", "type": "plugin" },
        ],
        "actions": [
            { "id": "go", "label": "Go", "confirm": { "required": true, "title": "t", "message": "m" },
              "button_label": "Do", "events": ["client_connect", "login_failed"], "schedule": "0 3 * * *",
              "timeout": 60 },
            { "id": "other", "confirm": false },
        ],
        "permissions": { "api": ["channels:write", "*:read"], "network": true, "listen": [9090],
            "programs": ["ffmpeg"], "files": ["recordings", "/srv//guides/:write"] },
        "requirements": ["requests>=2.31", "rapidfuzz"], "lifetime": "on_demand", "concurrency": 4,
        "limits": { "memory_mib": 512 },
    })
}

fn parse(value: &Value) -> Result<Manifest, ManifestError> {
    Manifest::parse(value.to_string().as_bytes())
}

#[test]
fn a_manifest_is_read_with_all_its_parts_and_unknown_members_stay() {
    let manifest = parse(&sample()).unwrap();
    assert_eq!((&*manifest.name, &*manifest.version, manifest.is_legacy), ("My Plugin", "1.2.3", false));
    assert_eq!(manifest.json["license"], "MIT");
    let fields = manifest.fields.as_ref().unwrap();
    assert_eq!(fields.len(), 7);
    assert_eq!(fields[0].json()["placeholder"], "x");
    assert!(fields[3].is_password && fields[3].shown()["default"] == MASK);
    assert_eq!(fields[6].kind, FieldKind::Other("plugin".to_owned()));
    let go = manifest.action("go").unwrap();
    assert_eq!(
        (go.events.clone(), go.unknown_events.clone()),
        (vec!["client_connect".to_owned()], vec!["login_failed".to_owned()])
    );
    assert_eq!((go.schedule.as_deref(), go.timeout_s), (Some("0 3 * * *"), 60));
    assert_eq!(go.confirm.as_ref().unwrap().title, "t");
    let other = manifest.action("other").unwrap();
    assert_eq!((&*other.label, other.timeout_s, &other.confirm), ("other", ACTION_SECONDS_DEFAULT, &None));
    assert_eq!((manifest.lifetime, manifest.concurrency), (Lifetime::OnDemand, 4));
    assert_eq!(manifest.limits, Limits { memory_mib: 512, ..Limits::DEFAULT });
    let files: Vec<String> = manifest.permissions.files.iter().map(ToString::to_string).collect();
    assert_eq!(files, ["recordings", "/srv/guides:write"]);
}

/// Returns the sample with another value at a place, or with a new member.
fn changed(pointer: &str, value: Value) -> Value {
    let mut manifest = sample();
    match manifest.pointer_mut(pointer) {
        Some(member) => *member = value,
        None => drop(manifest.as_object_mut().unwrap().insert(pointer[1..].to_owned(), value)),
    }
    manifest
}

fn paths(faults: &[ManifestFault]) -> Vec<&str> {
    faults.iter().map(|it| &*it.path).collect()
}

#[test]
fn each_wrong_or_missing_member_is_named_with_its_place() {
    let check = |pointer: &str, value: Value, path: &str| match parse(&changed(pointer, value)) {
        Err(ManifestError::Faults(faults)) => assert_eq!(paths(&faults), [path], "{pointer}"),
        other => panic!("{pointer}: {other:?}"),
    };
    check("/name", json!(null), "name");
    check("/name", json!(" "), "name");
    check("/version", json!([1]), "version");
    check("/version", json!(""), "version");
    check("/permissions", json!(["network"]), "permissions");
    check("/permissions", json!(null), "permissions");
    check("/permissions/api/0", json!("channels"), "permissions.api[0]");
    check("/permissions/network", json!("yes"), "permissions.network");
    check("/permissions/listen/0", json!(80), "permissions.listen[0]");
    check("/permissions/programs/0", json!("/bin/sh"), "permissions.programs[0]");
    check("/permissions/files/1", json!("/srv/../etc"), "permissions.files[1]");
    check("/requirements", json!("requests"), "requirements");
    check("/requirements/0", json!(5), "requirements[0]");
    check("/requirements/0", json!("--index-url=http://x"), "requirements[0]");
    check("/requirements/0", json!("x @ http://host/x.whl"), "requirements[0]");
    check("/command", json!("run"), "command");
    check("/command", json!([]), "command");
    check("/command", json!(["run", 5]), "command[1]");
    assert!(matches!(parse(&json!([])), Err(ManifestError::NotJson(_))));
    assert!(matches!(Manifest::parse(b"{\"name\":"), Err(ManifestError::NotJson(_))));
    assert_eq!(Manifest::parse(&vec![b' '; MANIFEST_BYTES_MAX + 1]), Err(ManifestError::TooLarge));
    let missing = parse(&json!({})).unwrap_err().to_string();
    assert_eq!(missing, "plugin.json: name is required; version is required");
}

/// Two published plugins could not be installed, because a select field has no list of options: their class lists them when
/// it runs.
#[test]
fn a_damaged_element_costs_only_itself_and_is_named_with_its_place() {
    const FIELDS: [&str; 7] = ["n", "sel", "on", "key", "notes", "", "new"];
    const ACTIONS: [&str; 2] = ["go", "other"];
    let whole = parse(&sample()).unwrap();
    assert_eq!(whole.ignored, []);
    let check = |pointer: &str, value: Value, path: &str, lost: Option<&str>| {
        let manifest = parse(&changed(pointer, value.clone())).unwrap();
        assert_eq!(paths(&manifest.ignored), [path], "{pointer} {value}");
        let left = |all: &'static [&str]| all.iter().copied().filter(move |it| Some(*it) != lost);
        let fields = manifest.fields.iter().flatten().map(|it| &*it.id);
        let actions = manifest.actions.iter().flatten().map(|it| &*it.id);
        match path {
            "fields" => assert_eq!(manifest.fields, None, "the class may list them"),
            "actions" => assert_eq!(manifest.actions, None, "the class may list them"),
            _ => assert!(fields.eq(left(&FIELDS)) && actions.eq(left(&ACTIONS)), "{pointer}"),
        }
        // No client gets a damaged member.
        let name = pointer.rsplit('/').next().unwrap_or_default();
        let members = manifest.fields.iter().flatten().map(Field::json);
        let mut members = members.chain(manifest.actions.iter().flatten().map(Action::json));
        assert!(members.all(|it| it.get(name) != Some(&value)), "{pointer} {value}");
    };
    check("/version", json!(1.5), "version", None);
    check("/description", json!([]), "description", None);
    check("/description", json!(null), "description", None);
    check("/author", json!({}), "author", None);
    check("/help_url", json!(5), "help_url", None);
    check("/fields", json!({}), "fields", None);
    check("/fields/0", json!("n"), "fields[0]", Some("n"));
    check("/fields/0/id", json!(null), "fields[0]", Some("n"));
    check("/fields/0/label", json!(5), "fields[0].label", None);
    check("/fields/0/placeholder", json!(["x"]), "fields[0].placeholder", None);
    check("/fields/0/default", json!("five"), "fields[0].default", None);
    check("/fields/1/options", json!("a"), "fields[1].options", None);
    check("/fields/1/options", json!({ "a": "A" }), "fields[1].options", None);
    check("/fields/1/options/0", json!({ "label": "A" }), "fields[1].options[0]", None);
    check("/fields/1/options/0", json!([1]), "fields[1].options[0]", None);
    check("/fields/1/default", json!(["a"]), "fields[1].default", None);
    check("/fields/2/default", json!("yes"), "fields[2].default", None);
    check("/fields/3/input_type", json!(["password"]), "fields[3].input_type", None);
    check("/actions", json!("go"), "actions", None);
    check("/actions/0", json!("go"), "actions[0]", Some("go"));
    check("/actions/0/id", json!(""), "actions[0].id", Some("go"));
    check("/actions/0/id", json!(7), "actions[0].id", Some("go"));
    check("/actions/0/label", json!(["Go"]), "actions[0].label", None);
    check("/actions/0/button_label", json!(false), "actions[0].button_label", None);
    check("/actions/0/events", json!("client_connect"), "actions[0].events", None);
    check("/actions/0/events/0", json!(5), "actions[0].events[0]", None);
    check("/actions/0/schedule", json!(5), "actions[0].schedule", None);
    check("/actions/0/schedule", json!("*".repeat(300)), "actions[0].schedule", None);
    check("/actions/0/confirm", json!(1), "actions[0].confirm", None);
    check("/actions/0/confirm/required", json!("yes"), "actions[0].confirm.required", None);
    check("/actions/0/confirm/title", json!(5), "actions[0].confirm.title", None);
    check("/actions/0/timeout", json!(0), "actions[0].timeout", None);
    check("/actions/0/timeout", json!(43_201), "actions[0].timeout", None);
    check("/lifetime", json!("forever"), "lifetime", None);
    check("/concurrency", json!(9), "concurrency", None);
    check("/limits", json!([]), "limits", None);
    check("/limits/memory_mib", json!(2_048), "limits.memory_mib", None);

    // The first of two entries with an id stays.
    let twice = parse(&changed("/fields/0/id", json!("sel"))).unwrap();
    assert_eq!(paths(&twice.ignored), ["fields[1].id"]);
    assert_eq!(twice.fields.unwrap()[0].kind, FieldKind::Number);
    let twice = parse(&changed("/actions/1/id", json!("go"))).unwrap();
    assert_eq!((paths(&twice.ignored), twice.actions.unwrap().len()), (vec!["actions[1].id"], 1));
    let many = json!((0..501).map(|it| json!({ "id": it.to_string() })).collect::<Vec<_>>());
    let many = parse(&changed("/actions", many)).unwrap();
    assert_eq!((paths(&many.ignored), many.actions.unwrap().len()), (vec!["actions"], 500));
}

#[test]
fn what_replaces_a_damaged_element_is_the_careful_choice() {
    let parse = |pointer: &str, value: Value| parse(&changed(pointer, value)).unwrap();
    // A question that cannot be read is asked.
    for (pointer, value, title) in [
        ("/actions/0/confirm", json!(1), "Run this action?"),
        ("/actions/0/confirm/required", json!("no"), "t"),
        ("/actions/0/confirm/title", json!({}), "Run this action?"),
    ] {
        let manifest = parse(pointer, value);
        let go = manifest.action("go").unwrap();
        assert_eq!(go.confirm.as_ref().unwrap().title, title, "{pointer}");
        assert!(go.json()["confirm"] == true || go.json()["confirm"].get("required") != Some(&json!("no")));
    }
    // A field that may be a password is one.
    let manifest = parse("/fields/3/input_type", json!(["password"]));
    let key = &manifest.fields.as_ref().unwrap()[3];
    assert!(key.is_password && key.shown()["default"] == MASK && key.json()["input_type"] == "password");
    let manifest = parse("/limits/memory_mib", json!(2_048));
    assert_eq!((manifest.limits, parse("/concurrency", json!(0)).concurrency), (Limits::DEFAULT, 1));
    assert_eq!(parse("/lifetime", json!(5)).lifetime, Lifetime::Resident);
    assert_eq!(parse("/version", json!(1.5)).version, "1.5");
    assert_eq!(
        parse("/actions/0/timeout", json!("60")).action("go").unwrap().timeout_s,
        ACTION_SECONDS_DEFAULT
    );
}

#[test]
fn unknown_keys_and_types_are_named_and_refuse_nothing() {
    let check = |pointer: &str, value: Value, expected: &[&str]| {
        let manifest = parse(&changed(pointer, value)).unwrap();
        let actions: Vec<_> = manifest.actions.iter().flatten().map(|it| it.json().clone()).collect();
        let found = unknown_parts(&manifest, manifest.fields.as_deref().unwrap_or_default(), &actions);
        assert_eq!(found, expected, "{pointer}");
    };
    const TYPE: &str = "The field \"new\" has the unknown type \"plugin\", so any value is accepted.";
    check("/license", json!("MIT"), &[TYPE]);
    check("/fields/6/type", json!("text"), &[]);
    check("/badge", json!(1), &["Unknown keys have no effect: badge.", TYPE]);
    check("/permissions", json!({ "root": true }), &["Unknown keys have no effect: permissions.root.", TYPE]);
    check(
        "/fields/0",
        json!({ "id": "n", "min": 1, "max": 2 }),
        &["Unknown keys have no effect: fields.n.max, fields.n.min.", TYPE],
    );
    check(
        "/actions/1",
        json!({ "id": "x", "icon": "y" }),
        &["Unknown keys have no effect: actions.x.icon.", TYPE],
    );
    let many = Value::from_iter((0..25).map(|it| (format!("k{it:02}"), json!(it))));
    let manifest = parse(&changed("/permissions", many)).unwrap();
    let found = unknown_parts(&manifest, &[], &[]).remove(0);
    assert!(found.ends_with("permissions.k19 and 5 more."), "{found}");
}

#[test]
fn a_select_field_without_options_takes_any_value_until_the_code_lists_some() {
    let object = |value: Value| value.as_object().cloned().unwrap();
    let reported = ReportedParts {
        fields: vec![
            json!({ "id": "sel", "type": "select", "options": [{ "value": "x", "label": "X" }] }),
            json!({ "id": "n", "type": "string" }),
        ],
        ..ReportedParts::default()
    };
    for options in [json!(null), json!([]), json!("from code"), json!([{ "label": "no value" }])] {
        let mut manifest = sample();
        manifest["fields"][1]["options"] = options.clone();
        let manifest = parse(&manifest).unwrap();
        let fields = fields_of_plugin(Some(&manifest), None);
        assert!(fields[1].lacks_options() && fields[1].default == Some(json!("a")), "{options}");
        let none = PluginSettings::default();
        for value in [json!("b"), json!(2), json!(true)] {
            assert!(none.replaced(object(json!({ "sel": value })), &fields).is_ok(), "{value}");
        }
        assert!(none.replaced(object(json!({ "sel": ["b"] })), &fields).is_err());

        let fields = fields_of_plugin(Some(&manifest), Some(&reported));
        let option = FieldOption { value: json!("x"), label: "X".to_owned() };
        assert_eq!(fields[1].kind, FieldKind::Select(vec![option]));
        assert_eq!(fields[1].json()["options"], json!([{ "value": "x", "label": "X" }]));
        assert_eq!((fields.len(), &fields[0].kind), (7, &FieldKind::Number), "the manifest counts");
        assert!(none.replaced(object(json!({ "sel": "b" })), &fields).is_err());
    }
    // Options of the manifest stay.
    let manifest = parse(&sample()).unwrap();
    assert_eq!(fields_of_plugin(Some(&manifest), Some(&reported)), manifest.fields.unwrap());
}

#[test]
fn a_small_manifest_declares_no_permissions_and_leaves_fields_to_the_code() {
    let manifest = parse(&json!({ "name": "n", "version": "1", "description": "" })).unwrap();
    assert_eq!((&manifest.fields, &manifest.actions), (&None, &None));
    assert_eq!(manifest.permissions, Permissions::undeclared());
    let legacy = Manifest::legacy(&PluginKey::from_folder("Old One").unwrap());
    assert_eq!((&*legacy.name, legacy.is_legacy, &*legacy.version), ("old_one", true, ""));
    assert!(!legacy.permissions.is_declared);
}

#[test]
fn settings_are_checked_by_the_type_of_their_field() {
    let fields = parse(&sample()).unwrap().fields.unwrap();
    let none = PluginSettings::default();
    for (id, good, wrong) in [
        ("n", json!(7.5), json!("7")),
        ("sel", json!(2), json!("2")),
        ("on", json!(true), json!("true")),
        ("key", json!("x"), json!(1)),
        ("notes", json!("a\nb"), json!("a\0b")),
        ("notes", json!("x".repeat(1_000)), json!("x".repeat(200_000))),
    ] {
        let set = |value: Value| json!({ id: value }).as_object().cloned().unwrap();
        assert!(none.replaced(set(good.clone()), &fields).is_ok(), "{id} {good}");
        let refused = none.replaced(set(wrong), &fields).unwrap_err();
        assert_eq!(refused[0].field, id, "{refused:?}");
    }
    let large = json!({ "any": "x".repeat(SETTINGS_BYTES_MAX) }).as_object().cloned().unwrap();
    assert_eq!(none.replaced(large, &fields).unwrap_err()[0].field, "settings");
}

#[test]
fn passwords_are_masked_and_kept_until_another_one_is_sent() {
    let fields = parse(&sample()).unwrap().fields.unwrap();
    let object = |value: Value| value.as_object().cloned().unwrap();
    let settings =
        PluginSettings::default().replaced(object(json!({ "key": "hunter2", "n": 1 })), &fields).unwrap();
    assert!(!format!("{settings:?}").contains("hunter2"));
    assert_eq!(settings.masked(&fields), object(json!({ "key": MASK, "n": 1 })));
    for kept in [json!({ "key": MASK, "n": 2 }), json!({ "n": 2 })] {
        let changed = settings.replaced(object(kept), &fields).unwrap();
        assert_eq!(changed.passwords(&fields).collect::<Vec<_>>(), ["hunter2"]);
        assert_eq!(changed.with_defaults(&fields)["n"], 2);
    }
    let cleared = settings.replaced(object(json!({ "key": "", "n": null })), &fields).unwrap();
    assert_eq!(cleared.passwords(&fields).count(), 0);
    assert_eq!(cleared.with_defaults(&fields)["n"], 5, "the default applies again");
    let masked = PluginSettings::default().replaced(object(json!({ "key": MASK })), &fields).unwrap();
    assert_eq!(masked.with_defaults(&fields)["key"], "p", "a mask is never saved");

    // Without its field, for example because the folder of the plugin is gone, nobody knows that it is a password.
    let shown = settings.masked(&[]);
    assert_eq!(shown, object(json!({ "key": MASK, "n": 1 })));
    assert_eq!(settings.replaced(shown, &[]).unwrap(), settings);
    let masked = PluginSettings::default().replaced(object(json!({ "other": MASK })), &[]).unwrap();
    assert_eq!(masked, PluginSettings::default());
}

#[test]
fn an_update_waits_only_if_it_wants_more_than_was_granted() {
    let permissions = |value: Value| {
        let mut manifest = sample();
        manifest["permissions"] = value;
        parse(&manifest).unwrap().permissions
    };
    let check = |wanted: Value, granted: Value, more: &[&str]| {
        assert_eq!(permissions(wanted).beyond(&permissions(granted)), more);
    };
    check(json!({}), json!({}), &[]);
    check(json!({ "api": ["channels:read"] }), json!({ "api": ["channels:write"] }), &[]);
    check(
        json!({ "api": ["channels:write"] }),
        json!({ "api": ["channels:read"] }),
        &["API: channels:write"],
    );
    check(json!({ "api": ["vod:read"] }), json!({ "api": ["*:read"] }), &[]);
    check(json!({ "api": ["users:read"] }), json!({ "api": ["*:write"] }), &["API: users:read"]);
    check(json!({ "network": true }), json!({}), &["connections to any host"]);
    check(json!({ "listen": [9000, 9001] }), json!({ "listen": [9000] }), &["listening at port 9001"]);
    check(json!({ "programs": ["ffmpeg"] }), json!({}), &["starting the program ffmpeg"]);
    check(json!({ "files": ["logos"] }), json!({ "files": ["logos:write"] }), &[]);
    check(json!({ "files": ["logos:write"] }), json!({ "files": ["logos"] }), &["files: logos:write"]);
    let declared = permissions(json!({ "network": true }));
    assert_eq!(Permissions::undeclared().beyond(&declared), ["use of the whole API"]);
    assert_eq!(declared.beyond(&Permissions::undeclared()), [""; 0]);
}

#[test]
fn scopes_permit_their_part_of_the_api_and_protected_parts_only_by_name() {
    let check = |scopes: &[&str], path: &str, is_write: bool, expected: bool| {
        let scopes = scopes.iter().map(|it| ApiScope::parse(it).unwrap()).collect();
        let permissions = Permissions { api: ApiAccess::Scopes(scopes), ..Permissions::none() };
        assert_eq!(permissions.permits_api(path, is_write), expected, "{path}");
    };
    check(&["channels:read"], "/api/channels/channels/", false, true);
    check(&["channels:read"], "/api/channels/channels/", true, false);
    check(&["channels:write"], "/api/channels/channels/5/", false, true);
    check(&["channels:write"], "/api/channels/streams/", false, false);
    check(&["*:write"], "/api/m3u/accounts/", true, true);
    check(&["*:write"], "/api/accounts/users/", false, false);
    check(&["*:write"], "/api/core/streamprofiles/", true, false);
    check(&["*:write"], "/api/plugins/plugins/", false, false);
    check(&["*:write"], "/api/connect/integrations/", false, false);
    check(&["*:write"], "/api/backups/", false, false);
    check(&["*:write"], "/api/elsewhere/", false, false);
    check(&["users:read"], "/api/accounts/users/", false, true);
    check(&[], "/api/", false, false);
    assert!(Permissions::undeclared().permits_api("/api/accounts/users/", true));
    assert!(!Permissions::undeclared().permits_api("/api/backups/x/download/", false));
}

#[test]
fn keys_are_safe_as_paths_and_keep_hyphens() {
    for (folder, key) in
        [("stream-dripper", "stream-dripper"), ("My Plugin X", "my_plugin_x"), ("v1.2", "v1.2")]
    {
        assert_eq!(PluginKey::from_folder(folder).unwrap().as_str(), key);
    }
    let long = "x".repeat(KEY_BYTES_MAX + 1);
    for folder in ["", " ", ".", "..", ".git", "-x", "a/b", "a\\b", "é", "a\0", &long] {
        assert_eq!(PluginKey::from_folder(folder), Err(WrongPluginKey), "{folder:?}");
    }
}

#[test]
fn names_that_lead_elsewhere_or_collide_are_refused() {
    let check = |names: &[&[u8]], expected: Option<NameFault>| {
        let mut known = ArchiveNames::default();
        let (last, first) = names.split_last().unwrap();
        for name in first {
            assert!(known.add(name).is_ok(), "{names:?}");
        }
        assert_eq!(known.add(last).err(), expected, "{names:?}");
    };
    check(&[b"p/plugin.py"], None);
    check(&[b"p/", b"p/plugin.py"], None);
    check(&[b"p/plugin.py", b"p/"], None);
    check(&[b"p/..x"], None);
    check(&[b""], Some(NameFault::Empty));
    check(&[b"/etc/passwd"], Some(NameFault::Absolute));
    check(&[b"p/../../x"], Some(NameFault::Traversal));
    check(&[b".."], Some(NameFault::Traversal));
    check(&[b"./x"], Some(NameFault::Traversal));
    check(&[b"p//x"], Some(NameFault::EmptyPart));
    check(&[b"C:/x"], Some(NameFault::Drive));
    check(&[b"c:x"], Some(NameFault::Drive));
    check(&[b"p\\..\\x"], Some(NameFault::Backslash));
    check(&[b"p/x\0.py"], Some(NameFault::Control));
    check(&[b"p/x\n"], Some(NameFault::Control));
    check(&["p/\u{85}".as_bytes()], Some(NameFault::Control));
    check(&[b"p/\xff"], Some(NameFault::NotUtf8));
    check(&["x".repeat(256).as_bytes()], Some(NameFault::TooLong));
    check(&["a/".repeat(40).as_bytes()], Some(NameFault::TooLong));
    check(&[b"p/x", b"p/x"], Some(NameFault::Duplicate));
    check(&[b"p/", b"p/"], Some(NameFault::Duplicate));
    check(&[b"p/x", b"p/X"], Some(NameFault::SameForFileSystems));
    check(&[b"p/x", b"P/y"], Some(NameFault::SameForFileSystems));
    check(&["p/é".as_bytes(), "p/e\u{301}".as_bytes()], Some(NameFault::SameForFileSystems));
    check(&["p/Straße".as_bytes(), "p/STRASSE".as_bytes()], Some(NameFault::SameForFileSystems));
    check(&[b"p/x", b"p/x/y"], Some(NameFault::FileAndFolder));
    check(&[b"p/x/y", b"p/x"], Some(NameFault::FileAndFolder));
}

#[test]
fn the_one_plugin_of_an_archive_is_found_where_it_is() {
    let check = |names: &[&str], expected: Result<&str, &str>| {
        let names: Vec<EntryName> = names.iter().map(|it| EntryName::parse(it.as_bytes()).unwrap()).collect();
        let found = PluginRoot::find(names.iter(), "My Archive.ZIP");
        match (found, expected) {
            (Ok(root), Ok(expected)) => {
                assert_eq!(format!("{}:{}", root.parts.join("/"), root.key), expected, "{names:?}");
            }
            (Err(fault), Err(expected)) => assert!(fault.to_string().contains(expected), "{fault}"),
            (found, _) => panic!("{names:?}: {found:?}"),
        }
    };
    check(&["p/", "p/plugin.json", "p/plugin.py"], Ok("p:p"));
    check(&["plugin.json", "plugin.py"], Ok(":my_archive"));
    check(&["top/README", "top/One/plugin.json", "top/tests/__init__.py"], Ok("top/One:one"));
    check(&["p/plugin.py", "p/sub/plugin.py"], Ok("p:p"));
    check(&["p/__init__.py", "__MACOSX/p/plugin.json"], Ok("p:p"));
    check(&["a/plugin.py", "b/plugin.py"], Err("several plugins: a, b"));
    check(&["README.md"], Err("no plugin"));
    check(&["é/plugin.py"], Err("cannot be a plugin"));
}

#[test]
fn permissions_that_a_version_no_longer_declares_are_not_kept() {
    let permissions = |value: Value| {
        let mut manifest = sample();
        manifest["permissions"] = value;
        Manifest::parse(manifest.to_string().as_bytes()).unwrap().permissions
    };
    let check = |granted: Value, declared: Value, expected: Value| {
        let within = permissions(granted.clone()).within(&permissions(declared.clone()));
        assert_eq!(within, permissions(expected), "{granted} within {declared}");
        assert_eq!(within.beyond(&permissions(granted)), Vec::<String>::new());
    };
    let all = json!({"api": ["*:write", "users:read"], "network": true, "listen": [9090, 9091],
        "programs": ["ffmpeg", "sh"], "files": ["recordings:write", "/srv/a", "/srv/b:write"]});
    check(all.clone(), all.clone(), all.clone());
    // Folders may have been granted by an admin.
    check(all.clone(), json!({}), json!({"files": ["/srv/a", "/srv/b:write"]}));
    check(json!({}), all.clone(), json!({}));
    check(
        json!({"api": ["*:read", "users:write"]}),
        json!({"api": ["channels:write", "users:read"]}),
        json!({"api": ["channels:read", "users:read"]}),
    );
    check(json!({"api": ["*:write"]}), json!({"api": ["users:read"]}), json!({}));
    check(json!({"api": ["channels:read"]}), json!({"api": ["streams:read"]}), json!({}));
    check(json!({"listen": [9090, 9091]}), json!({"listen": [9091, 9092]}), json!({"listen": [9091]}));
    check(
        json!({"files": ["recordings:write", "logos"]}),
        json!({"files": ["recordings"]}),
        json!({"files": ["recordings"]}),
    );
    // From everything to what is declared, and not the other way round.
    let undeclared = Permissions::undeclared();
    assert_eq!(
        undeclared.within(&permissions(json!({"api": ["*:read"]}))),
        permissions(json!({"api": ["*:read"]}))
    );
    assert_eq!(permissions(json!({})).within(&undeclared), permissions(json!({})));
    assert_eq!(undeclared.within(&undeclared), undeclared);
}

#[test]
fn an_update_keeps_the_folders_that_an_admin_granted_and_no_others() {
    let files = |texts: &[&str]| {
        let files = texts.iter().map(|it| FileAccess::parse(it).unwrap()).collect();
        Permissions { files, ..Permissions::none() }
    };
    let granted = files(&["/declared", "/kept", "/admin:write"]);
    let (before, now) = (files(&["/declared", "/kept"]), files(&["/kept"]));
    assert_eq!(granted.after_update(Some(&before), &now), files(&["/kept", "/admin:write"]));
    assert_eq!(granted.after_update(None, &now), granted);
}
