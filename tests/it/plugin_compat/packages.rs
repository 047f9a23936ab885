//! What is known of a plugin before it is enabled, and packages that an admin allows to be fetched.

use serde_json::{Value, json};
use storage::plugin_files::testing::{archive, part};

use super::Story;
use crate::plugins::{PLUGINS, until_state};
use crate::support::upstream::{MockResponse, Provider};

const CODE: &str = r#"
import os
import tiny_words
import absent_package
from apps.channels.models import Channel, Unknown
from apps.proxy.ts_proxy.server import ProxyServer
from django.db import connection

FOLDER = "/data/exports/list.m3u"


class Plugin:
    def run(self, action, params, context):
        with connection.cursor() as cursor:
            cursor.execute("select 1")
        return Channel.objects.raw("select 1")


raise RuntimeError("the code was run")
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_needs_and_the_gateway_lacks_is_named_before_enabling() {
    let story = Story::new().await;
    let files: [(&str, &[u8]); 3] = [
        ("plugin.py", CODE.as_bytes()),
        ("broken.py", b"def ("),
        ("wheels/tiny_words-1.0-py3-none-any.whl", b"PK"),
    ];
    let plugin =
        story.import("needy", json!({ "requirements": ["tiny-words", "absent-package>=2"] }), &files).await;
    let scan = &plugin["scan"];
    let named: Vec<(&str, u64)> = scan["unsupported"]
        .as_array()
        .unwrap_or_else(|| panic!("{plugin}\n{}", story.program.output()))
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it["line"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("apps.channels.models.Unknown", 5),
        ("apps.proxy.ts_proxy.server", 6),
        ("connection.cursor", 14),
        ("Channel.objects.raw", 16),
    ];
    assert!(named[0].0.starts_with("a file that is not Python"), "{named:?}");
    assert_eq!(named[1..], expected, "{scan}");
    assert_eq!(scan["packages"], json!(["absent-package"]));
    assert_eq!(scan["folders"], json!(["/data/exports"]));
    assert_eq!(scan["requirements"], json!(["absent-package>=2"]));

    let refused = story.enable("needy", json!({})).await;
    assert_eq!(
        (&refused["status"], &refused["packages"]),
        (&json!(409), &json!(["absent-package>=2"])),
        "{refused}"
    );
    let folder = json!({ "folders": ["/data/exports:write"], "allowed_packages": ["absent-package"] });
    assert_eq!(story.enable("needy", folder).await["status"], 409, "another requirement is allowed");
    story.stop().await;
}

/// Makes a package index of one package: a page of links, as pip reads them. Returns its address.
fn index(provider: &Provider) -> String {
    let wheel = "tiny_words-1.0-py3-none-any.whl";
    let metadata = b"Metadata-Version: 2.1\nName: tiny-words\nVersion: 1.0\n";
    let tags = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    let content = archive(&[
        part("tiny_words/__init__.py", b"WORDS = ['a', 'b']\n"),
        part("tiny_words-1.0.dist-info/METADATA", metadata),
        part("tiny_words-1.0.dist-info/WHEEL", tags),
        part("tiny_words-1.0.dist-info/RECORD", b"tiny_words/__init__.py,,\n"),
    ]);
    let page = format!("<a href=\"{wheel}\">{wheel}</a>");
    provider.path("/index/tiny-words/").answers(MockResponse::text("text/html", page));
    let file = format!("/index/tiny-words/{wheel}");
    provider.path(&file).answers(MockResponse::text("application/zip", content));
    provider.url("/index")
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_are_fetched_only_with_consent() {
    let provider = Provider::start();
    let address = index(&provider);
    let story = Story::with(&[&format!("PIP_INDEX_URL={address}")]).await;
    let code = b"
import tiny_words
class Plugin:
    actions = [{'id': 'main', 'label': 'Main'}]
    def run(self, action, params, context):
        return {'status': 'ok', 'words': tiny_words.WORDS, 'from': tiny_words.__file__}
";
    let manifest = json!({ "requirements": ["tiny-words==1.0"] });
    let plugin = story.import("wordy", manifest, &[("plugin.py", code)]).await;
    assert_eq!(plugin["scan"]["requirements"], json!(["tiny-words==1.0"]), "{plugin}");
    assert_eq!(story.enable("wordy", json!({})).await["status"], 409);
    assert!(!story.files("wordy").join("environment").exists());

    let enabled = story.enable("wordy", json!({ "allowed_packages": ["tiny-words==1.0"] })).await;
    assert_eq!(enabled["status"], 200, "{enabled}");
    until_state(&story.program, &story.admin, "wordy", "ready").await;
    assert_eq!(enabled["plugin"]["scan"], Value::Null);
    let done = story.run("wordy", "main").await;
    assert_eq!(done["words"], json!(["a", "b"]));
    assert!(done["from"].as_str().unwrap().contains("plugin-data/wordy/environment"), "{done}");

    // A requirement that the index does not have leaves the old environment and a reason.
    let manifest = json!({ "requirements": ["tiny-words==9"], "version": "2" });
    story.ask("POST", &format!("{PLUGINS}wordy/enabled/"), json!({ "enabled": false })).await;
    let deleted = story.admin.delete(&format!("{PLUGINS}wordy/delete/")).await;
    assert_eq!(deleted.status, 200, "{deleted:?}");
    story.import("wordy", manifest, &[("plugin.py", code)]).await;
    let failed = story.enable("wordy", json!({ "allowed_packages": ["tiny-words==9"] })).await;
    assert_eq!(failed["status"], 200, "{failed}");
    let failed = until_state(&story.program, &story.admin, "wordy", "failed").await;
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("tiny-words==9") && error.contains("could not be installed"), "{error}");
    story.stop().await;
}
