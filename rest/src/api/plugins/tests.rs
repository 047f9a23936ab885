//! Plugins through the interface.

use std::fs;

use domain::plugin::{MASK, PluginKey, PluginValue, ReportedParts};
use domain::secret::Secret;
use serde_json::{Value, json};
use storage::plugin_files::testing::{archive, demo, hostile_archives, part};
use storage::records::set_plugin_value;

use super::*;
use crate::testing::{ADMIN as ADMIN_USER, Answer, Rest, SECRET};

const IMPORT: &str = "/api/plugins/plugins/import/";

fn manifest(version: &str, more: Value) -> Value {
    let mut manifest = json!({
        "name": "My Plugin", "version": version, "description": "d", "author": "me", "help_url": "http://e/",
        "fields": [
            { "id": "n", "label": "N", "type": "number", "default": 5 },
            { "id": "key", "label": "K", "type": "string", "input_type": "password" },
        ],
        "actions": [{ "id": "go", "label": "Go", "events": ["client_connect"] }],
    });
    manifest.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    manifest
}

/// Returns the archive of a plugin with this manifest.
fn plugin(manifest: &Value) -> Vec<u8> {
    archive(&[
        part("my_plugin/plugin.json", manifest.to_string().as_bytes()),
        part("my_plugin/plugin.py", b"class Plugin: pass"),
        part("my_plugin/logo.png", b"\x89PNG\r\n\x1a\npicture"),
    ])
}

async fn import(rest: &Rest, content: &[u8], overwrite: bool) -> Answer {
    let mut body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"overwrite\"\r\n\r\n{overwrite}\r\n--b\r\n\
         Content-Disposition: form-data; name=\"file\"; filename=\"my_plugin.zip\"\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(content);
    body.extend_from_slice(b"\r\n--b--\r\n");
    let bearer = rest.bearer(ADMIN_USER);
    let headers = [("authorization", bearer.as_str()), ("content-type", "multipart/form-data; boundary=b")];
    rest.send("POST", IMPORT, &headers, body).await
}

async fn post(rest: &Rest, what: &str, body: Value) -> Answer {
    rest.admin("POST", &format!("/api/plugins/plugins/my_plugin/{what}/"), body).await
}

async fn listed(rest: &Rest) -> Vec<Value> {
    rest.admin("GET", LIST, Value::Null).await.body["plugins"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_plugin_is_imported_configured_enabled_and_deleted() {
    let rest = Rest::start().await;
    assert_eq!(listed(&rest).await, [] as [Value; 0]);
    let imported = import(&rest, &plugin(&manifest("1.2.3", json!({}))), false).await;
    assert_eq!((imported.status, &imported.body["success"]), (200, &json!(true)), "{}", imported.text);
    let plugin_view = &imported.body["plugin"];
    for (name, value) in [
        ("key", json!("my_plugin")),
        ("name", json!("My Plugin")),
        ("version", json!("1.2.3")),
        ("enabled", json!(false)),
        ("ever_enabled", json!(false)),
        ("settings", json!({})),
        ("missing", json!(false)),
        ("legacy", json!(false)),
        ("error", Value::Null),
    ] {
        assert_eq!(plugin_view[name], value, "{name}");
    }
    assert_eq!(plugin_view["fields"][0], json!({ "id": "n", "label": "N", "type": "number", "default": 5 }));
    assert_eq!(plugin_view["actions"][0]["events"], json!(["client_connect"]));
    assert_eq!(listed(&rest).await[0], *plugin_view);

    let again = import(&rest, &plugin(&manifest("1.2.3", json!({}))), false).await;
    assert_eq!((again.status, &again.body["error"]), (400, &json!("Plugin 'my_plugin' already exists")));

    let sent = json!({ "settings": { "n": 7, "key": SECRET, "other": [1] } });
    let saved = post(&rest, "settings", sent).await;
    let shown = json!({ "n": 7, "key": MASK, "other": [1] });
    assert_eq!(saved.body, json!({ "success": true, "settings": shown }), "{}", saved.text);
    let wrong = post(&rest, "settings", json!({ "settings": { "n": "7" } })).await;
    assert_eq!((wrong.status, wrong.body), (400, json!({ "n": ["Must be a number."] })));
    let masked = post(&rest, "settings", json!({ "settings": { "key": MASK } })).await;
    assert_eq!(masked.body["settings"], json!({ "key": MASK }));
    let key = PluginKey::from_folder("my_plugin").unwrap();
    let record = rest.models.plugins.load().one_by("key", key.as_str()).cloned().unwrap();
    assert_eq!(record.settings.with_defaults(&[])["key"], SECRET);

    for wrong in
        [json!({}), json!({ "enabled": "true" }), json!({ "enabled": 1 }), json!({ "enabled": null })]
    {
        let refused = post(&rest, "enabled", wrong).await;
        assert!(refused.status == 400 && refused.body["enabled"].is_array(), "{}", refused.text);
    }
    let enabled = post(&rest, "enabled", json!({ "enabled": true, "version": "1.2.3" })).await;
    assert_eq!((enabled.status, &enabled.body["ever_enabled"]), (200, &json!(true)), "{}", enabled.text);
    assert_eq!(enabled.body["plugin"]["additional_permissions"], json!([]));
    let disabled = post(&rest, "enabled", json!({ "enabled": false })).await;
    assert_eq!((&disabled.body["enabled"], &disabled.body["ever_enabled"]), (&json!(false), &json!(true)));

    let delete = "/api/plugins/plugins/my_plugin/delete/?data=true";
    fs::create_dir_all(rest.data_dir().join("plugin-data/my_plugin")).unwrap();
    assert_eq!(rest.admin("DELETE", delete, Value::Null).await.body, json!({ "success": true }));
    assert!(!rest.data_dir().join("plugins/my_plugin").exists());
    assert!(!rest.data_dir().join("plugin-data/my_plugin").exists());
    assert_eq!(listed(&rest).await, [] as [Value; 0]);
    assert_eq!(rest.admin("DELETE", delete, Value::Null).await.status, 404);
}

#[tokio::test]
async fn a_deleted_plugin_keeps_the_values_that_it_stored_unless_its_data_is_deleted_too() {
    let rest = Rest::start().await;
    let store = &rest.models.store;
    let key = PluginKey::from_folder("my_plugin").unwrap();
    let value = Some(Secret::new("1"));
    store.write(move |write| set_plugin_value(write, &key, "token".to_owned(), value)).await.unwrap();
    for (query, n_left) in [("", 1), ("?data=true", 0)] {
        import(&rest, &plugin(&manifest("1.0.0", json!({}))), false).await;
        let delete = format!("/api/plugins/plugins/my_plugin/delete/{query}");
        assert_eq!(rest.admin("DELETE", &delete, Value::Null).await.body, json!({ "success": true }));
        assert_eq!(store.collection::<PluginValue>().len(), n_left);
    }
}

#[tokio::test]
async fn an_update_keeps_settings_and_waits_if_it_wants_more_than_was_granted() {
    let rest = Rest::start().await;
    let version =
        |version: &str, permissions: Value| plugin(&manifest(version, json!({ "permissions": permissions })));
    import(&rest, &version("1.0.0", json!({ "api": ["channels:read"] })), false).await;
    post(&rest, "settings", json!({ "settings": { "n": 7 } })).await;
    let folders = json!({ "enabled": true, "folders": ["/data/guides:write"] });
    let enabled = post(&rest, "enabled", folders).await;
    let granted = &enabled.body["plugin"]["granted_permissions"];
    assert_eq!(
        (&granted["api"], &granted["files"]),
        (&json!(["channels:read"]), &json!(["/data/guides:write"]))
    );

    let same = import(&rest, &version("1.1.0", json!({ "api": ["channels:read"] })), true).await;
    let about = |answer: &Answer| {
        let plugin = &answer.body["plugin"];
        (plugin["version"].clone(), plugin["enabled"].clone(), answer.body["waits_for_permissions"].clone())
    };
    assert_eq!(about(&same), (json!("1.1.0"), json!(true), json!(false)), "{}", same.text);
    let more =
        import(&rest, &version("2.0.0", json!({ "api": ["channels:write"], "network": true })), true).await;
    assert_eq!(about(&more), (json!("2.0.0"), json!(false), json!(true)), "{}", more.text);
    assert_eq!(more.body["plugin"]["settings"], json!({ "n": 7 }));
    let additional = &more.body["plugin"]["additional_permissions"];
    assert_eq!(*additional, json!(["API: channels:write", "connections to any host"]));

    let unseen = post(&rest, "enabled", json!({ "enabled": true, "version": "1.1.0" })).await;
    assert_eq!(unseen.status, 400, "{}", unseen.text);
    assert!(unseen.body["error"].as_str().unwrap().contains("2.0.0 is installed now"), "{}", unseen.text);
    let granted = post(&rest, "enabled", json!({ "enabled": true, "version": "2.0.0" })).await;
    assert_eq!(granted.body["plugin"]["additional_permissions"], json!([]), "{}", granted.text);
    let outside = post(&rest, "enabled", json!({ "enabled": true, "folders": ["../x"] })).await;
    assert!(outside.status == 400 && outside.body["folders"].is_array(), "{}", outside.text);
}

#[tokio::test]
async fn refused_archives_name_the_entry_and_change_nothing() {
    let rest = Rest::start().await;
    import(&rest, &plugin(&manifest("1.0.0", json!({}))), false).await;
    let before = listed(&rest).await;
    for (bytes, expected) in hostile_archives() {
        let refused = import(&rest, &bytes, true).await;
        let error = refused.body["error"].as_str().unwrap_or_default();
        assert!(refused.status == 400 && error.contains(&expected), "{expected}: {}", refused.text);
        assert_eq!(refused.body["success"], false);
    }
    let wrong = manifest("1.1.0", json!({ "requirements": ["--index-url=http://x"] }));
    let refused = import(&rest, &plugin(&wrong), true).await;
    let error = refused.body["error"].as_str().unwrap_or_default();
    assert!(refused.status == 400 && error.contains("requirements[0]"), "{}", refused.text);
    assert_eq!(listed(&rest).await, before);
    let names: Vec<_> = fs::read_dir(rest.data_dir().join("plugins")).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let none = rest.admin("POST", IMPORT, json!({})).await;
    assert_eq!(none.status, 400, "{}", none.text);
}

#[tokio::test]
async fn a_plugin_with_damaged_elements_is_imported_with_a_warning_for_each() {
    let rest = Rest::start().await;
    let damaged = json!({
        "permissions": {},
        "fields": [
            { "id": "which", "label": "Which", "type": "select", "default": "" },
            { "label": "no id" },
            { "id": "n", "label": ["N"], "type": "number", "default": "five" },
        ],
        "actions": [
            { "id": "go", "schedule": "often", "confirm": 1, "button_variant": "loud", "button_color": 7 },
            "clean",
        ],
    });
    let imported = import(&rest, &plugin(&manifest("1.0.0", damaged)), false).await;
    assert_eq!(imported.status, 200, "{}", imported.text);
    let shown = &imported.body["plugin"];
    assert_eq!(shown["error"], Value::Null);
    let fields = json!([
        { "id": "which", "label": "Which", "type": "select", "default": "" },
        { "id": "n", "type": "number" },
    ]);
    assert_eq!(shown["fields"], fields);
    let actions = json!([{ "id": "go", "schedule": "often", "confirm": true, "button_variant": "loud" }]);
    assert_eq!(shown["actions"], actions);
    let warnings = shown["warnings"].as_array().unwrap();
    let places = [
        "fields[1] has no id",
        "fields[2].label",
        "fields[2].default",
        "actions[0].button_color",
        "actions[0].confirm",
        "actions[1]",
        "The field \"which\" has no options",
        "The action \"go\" runs without its schedule",
    ];
    assert_eq!(warnings.len(), places.len(), "{warnings:?}");
    for (warning, place) in warnings.iter().zip(places) {
        assert!(warning.as_str().unwrap().contains(place), "{place}: {warning}");
    }

    // A value is kept although no option has it. When the code has run, it is one of its options.
    let save =
        async |value: &str| post(&rest, "settings", json!({ "settings": { "which": value } })).await.status;
    assert_eq!((save("b").await, listed(&rest).await[0]["settings"]["which"].clone()), (200, json!("b")));
    let mut record = (**rest.models.plugins.load().one_by("key", "my_plugin").unwrap()).clone();
    let options = json!([{ "value": "a", "label": "A" }]);
    let of_code = json!({ "id": "which", "type": "select", "options": options.clone() });
    record.reported = Some(ReportedParts { fields: vec![of_code], ..ReportedParts::default() });
    rest.put([record]).await;
    let shown = listed(&rest).await.remove(0);
    assert_eq!((&shown["fields"][0]["options"], save("b").await, save("a").await), (&options, 400, 200));
    assert!(!shown["warnings"].to_string().contains("no options"), "{}", shown["warnings"]);
}

#[tokio::test]
async fn plugins_put_into_the_folder_by_hand_are_listed_even_if_they_cannot_be_used() {
    let rest = Rest::start().await;
    let folder = |name: &str| {
        let folder = rest.data_dir().join("plugins").join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    };
    fs::write(folder("old").join("plugin.py"), "raise SystemExit").unwrap();
    fs::write(folder("broken").join("plugin.json"), "{").unwrap();
    folder("Not A Key");
    let plugins = listed(&rest).await;
    let keys: Vec<&str> = plugins.iter().map(|it| it["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["broken", "old"]);
    assert!(plugins[0]["error"].as_str().unwrap().contains("not valid JSON"), "{}", plugins[0]);
    assert_eq!((&plugins[1]["legacy"], &plugins[1]["name"]), (&json!(true), &json!("old")));
    let enable = async |key: &str| {
        let path = format!("/api/plugins/plugins/{key}/enabled/");
        rest.admin("POST", &path, json!({ "enabled": true })).await
    };
    assert_eq!(enable("broken").await.status, 400);
    assert_eq!(enable("none").await.body["error"], "Plugin not found");
    let reloaded = rest.admin("POST", RELOAD, Value::Null).await;
    assert_eq!(reloaded.body, json!({ "success": true, "count": 2 }), "{}", reloaded.text);

    // The code has reported its attributes, and its folder is gone.
    let mut record = (**rest.models.plugins.load().one_by("key", "old").unwrap()).clone();
    record.reported = Some(ReportedParts {
        fields: vec![json!({ "id": "a", "type": "boolean" }), json!("no field")],
        actions: vec![json!({ "id": "run" })],
        name: Some("Old One".to_owned()),
        ..ReportedParts::default()
    });
    rest.put([record]).await;
    let warnings = listed(&rest).await[1]["warnings"].to_string();
    assert!(warnings.contains("the code of the plugin: fields[1] must be an object"), "{warnings}");
    fs::remove_dir_all(folder("old")).unwrap();
    let old = listed(&rest).await[1].clone();
    assert_eq!((&old["missing"], &old["name"]), (&json!(true), &json!("Old One")));
    assert_eq!(
        (&old["fields"], &old["actions"]),
        (&json!([{ "id": "a", "type": "boolean" }]), &json!([{ "id": "run" }]))
    );
}

#[tokio::test]
async fn logos_are_pictures_or_nothing() {
    let rest = Rest::start().await;
    import(&rest, &plugin(&manifest("1.0.0", json!({}))), false).await;
    let url = listed(&rest).await[0]["logo_url"].as_str().unwrap().to_owned();
    let path = &url[url.find("/api").unwrap()..];
    let shown = rest.send("GET", path, &[], "").await;
    assert_eq!((shown.status, &shown.headers["content-type"]), (200, &"image/png".parse().unwrap()));
    fs::write(rest.data_dir().join("plugins/my_plugin/logo.png"), "<svg onload='x'/>").unwrap();
    let refused = rest.send("GET", path, &[], "").await;
    assert_eq!((refused.status, &refused.body["error"]), (404, &json!("Logo not found")));
    let elsewhere = rest.send("GET", "/api/plugins/plugins/..%2f..%2fkey/logo/", &[], "").await;
    assert_eq!(elsewhere.status, 404);
}

#[tokio::test]
async fn only_admins_see_and_change_plugins() {
    let rest = Rest::start().await;
    import(&rest, &archive(&demo()), false).await;
    assert_eq!(rest.standard("GET", LIST, Value::Null).await.status, 403);
    for path in ["reload/", "import/", "demo/settings/", "demo/enabled/"] {
        let refused = rest.standard("POST", &format!("{LIST}{path}"), json!({})).await;
        assert_eq!(refused.status, 403, "{path}");
    }
    assert_eq!(rest.standard("DELETE", &format!("{LIST}demo/delete/"), Value::Null).await.status, 403);
}
