//! The plugins in `docs/writing-plugins.md` are installed, enabled and run.

use serde_json::{Value, json};
use storage::plugin_files::testing::{ArchivePart, archive, part};

use crate::plugins::{PLUGINS, install, listed};
use crate::support::api::Api;
use crate::support::binary::Binary;

/// An example: a manifest, and the code after it.
struct Example {
    manifest: Value,
    file: String,
    code: String,
}

/// Returns the fenced texts of a page with their languages.
fn fenced(page: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    // Fences begin and end in turn.
    let mut parts = page.split("\n```").skip(1);
    while let (Some(text), Some(_)) = (parts.next(), parts.next()) {
        found.extend(text.split_once('\n'));
    }
    found
}

/// Returns the examples that are whole plugins: a manifest, followed by its code.
fn examples(page: &str) -> Vec<Example> {
    let texts = fenced(page);
    let mut found = Vec::new();
    for pair in texts.windows(2) {
        let [("json", manifest), (language, code)] = pair else { continue };
        let manifest: Value = serde_json::from_str(manifest).unwrap();
        let file = match (*language, &manifest["command"][0]) {
            ("python", Value::Null) => "plugin.py",
            ("sh", Value::String(program)) => program.strip_prefix("./").expect("a file of the plugin"),
            other => panic!("code of a manifest expected: {other:?}"),
        };
        found.push(Example { file: file.to_owned(), code: format!("{code}\n"), manifest });
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plugins_in_the_documentation_work() {
    let page = include_str!("../../docs/writing-plugins.md");
    let examples = examples(page);
    assert_eq!(page.matches("```json").count(), examples.len(), "each manifest has its code");
    let data = tempfile::tempdir().unwrap();
    let program = Binary::start(&["serve", "--data-dir", &data.path().display().to_string()]);
    let admin = Api::stranger_at(program.address().await).become_first_admin().await;
    let mut languages = Vec::new();
    for Example { manifest, file, code } in examples {
        let key = manifest["name"].as_str().unwrap().to_lowercase();
        let archive = archive(&[
            part(&format!("{key}/plugin.json"), manifest.to_string().as_bytes()),
            ArchivePart { mode: 0o755, ..part(&format!("{key}/{file}"), code.as_bytes()) },
        ]);
        install(&program, &admin, &key, &archive).await;
        let actions = manifest["actions"].as_array().unwrap();
        assert!(!actions.is_empty(), "{manifest}");
        for action in actions {
            let body = json!({ "action": action["id"], "params": {} });
            let ran = admin.post(&format!("{PLUGINS}{key}/run/"), body).await;
            assert_eq!((ran.status, &ran.body["result"]["status"]), (200, &json!("ok")), "{key}: {ran:?}");
        }
        let shown = listed(&admin, &key).await;
        assert_eq!((&shown["state"], &shown["warnings"]), (&json!("ready"), &json!([])), "{shown}");
        languages.push(file.rsplit_once('.').unwrap().1.to_owned());
    }
    assert_eq!(languages, ["py", "sh"]);
}
