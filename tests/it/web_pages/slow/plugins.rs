//! Plugins: installed from an archive, enabled with their permissions, configured, run, and deleted.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use domain::user::UserLevel;
use serde_json::{Value, json};
use storage::plugin_files::testing::{archive, part};
use tempfile::TempDir;

use crate::support::api::Api;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::until_async;
use crate::support::web::{PASSWORD, Web, person};
use crate::web_audit::slow::{axe, check};
use crate::web_pages::page::Page;

/// A plugin whose action `count` ends when the test makes a file.
const CODE: &[u8] = b"
import os, time

class Plugin:
    def run(self, action, params, context):
        settings = context['settings']
        if action == 'greet':
            context['logger'].info('greeted <u>once</u>')
            return {'status': 'ok', 'message': f\"{settings['word']} {settings['mode'] + 1} {len(settings['key'])}\"}
        if action == 'count':
            context['progress'](40, 'Halfway <u>there</u>')
            context['publish']({'said': 'hello <u>'})
            while not os.path.exists(os.path.join(context['data_dir'], 'go')):
                if context['cancelled']():
                    return {}
                time.sleep(0.02)
            return {'status': 'ok', 'message': 'Counted all', 'counted': 12}
        if action == 'fail':
            raise ValueError('bang <u>')
        os._exit(3)
";

const STATE: &str = "return document.querySelector('main .row .logo')?.nextElementSibling?.innerText ?? ''";
const ROWS: &str =
    "return [...document.querySelectorAll('table tbody tr')].map((it) => it.innerText.replace(/\\s+/g, ' '))";

/// A gateway whose Python is missing until it is installed.
struct Office {
    data: TempDir,
    programs: TempDir,
    gateway: TestGateway,
    admin: Api,
    page: Page,
}

impl Office {
    async fn open() -> Office {
        let (data, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        // A gateway that runs as root gives its plugins another user.
        std::fs::set_permissions(programs.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let python = programs.path().join("python3").display().to_string();
        let setup = Setup::new().folder(data.path()).config(|it| it.plugins.python = Some(python));
        let gateway = setup.start().await;
        let root = person(&gateway, "root", UserLevel::Admin).await;
        let admin = Api::stranger_at(gateway.api).login(&root.name, PASSWORD).await;
        let page = Page::new(Web::signed_in(&gateway, &root, "/plugins").await);
        Office { data, programs, gateway, admin, page }
    }

    fn installs_python(&self) {
        symlink("/usr/bin/python3", self.programs.path().join("python3")).unwrap();
    }

    /// Returns the folder of the files that the plugin writes.
    fn files(&self) -> PathBuf {
        self.data.path().join("plugin-data/greeter/files")
    }

    /// Uploads an archive on the page of the installation.
    async fn uploads(&self, content: &[u8]) {
        self.page.chooses_archive(content).await;
        self.page.presses("Install").await;
    }

    /// Enables the plugin, also on a machine that does not enforce all limits.
    async fn enables(&self) {
        self.page.shows("Before you enable it").await;
        let accept = "const it = [...document.querySelectorAll('label')]
                .find((it) => it.innerText.includes('Enable it without these limits'))?.control;
            if (it && !it.checked) it.click()";
        self.page.browser().script(accept).await;
        self.page.presses("Enable").await;
    }

    /// Waits until the plugin has crashed this often and is in a state.
    async fn until_crashed(&self, n: u64, state: &str) {
        until_async(&format!("{n} crashes, and {state}"), async || {
            let all = self.admin.get("/api/plugins/plugins/").await.body;
            let plugin = &all["plugins"][0];
            plugin["crashes"] == n && plugin["state"] == state
        })
        .await;
    }

    /// Checks that nothing but requests with these statuses failed in the browser so far.
    async fn failed_only_with(&self, statuses: &[&str]) {
        let console = self.page.browser().console().await;
        assert!(console.iter().all(|it| statuses.iter().any(|status| it.contains(status))), "{console:#?}");
    }
}

fn greeter(version: &str, permissions: Value) -> Vec<u8> {
    let manifest = json!({
        "name": "Greeter <b>",
        "version": version,
        "description": "Greets <script>people</script>.",
        "help_url": "javascript:alert(1)",
        "permissions": permissions,
        "fields": [
            {"id": "word", "label": "Word", "type": "string", "default": "hello"},
            {"id": "mode", "label": "Mode", "type": "select", "default": 1, "options": [
                {"value": 1, "label": "Short"}, {"value": 2, "label": "Long"},
            ]},
            {"id": "key", "label": "Key", "type": "string", "input_type": "password", "default": ""},
            {"type": "info", "label": "Note", "description": "Nothing <u>else</u>."},
        ],
        "actions": [
            {"id": "greet", "label": "Greet", "button_label": "Greet <b>",
             "confirm": {"title": "Greet everybody?", "message": "They may <u>answer</u>."}},
            {"id": "count", "label": "Count"},
            {"id": "fail", "label": "Fail"},
            {"id": "die", "label": "Die", "events": ["channel_start", "later"]},
        ],
    });
    archive(&[part("greeter/plugin.json", manifest.to_string().as_bytes()), part("greeter/plugin.py", CODE)])
}

fn exists(path: &Path) -> bool {
    path.try_exists().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_installs_a_plugin_reads_its_permissions_configures_runs_updates_and_deletes_it() {
    let office = Office::open().await;
    let page = &office.page;
    page.shows("No plugins").await;
    page.presses("Install a plugin").await;
    let manifest = part("greeter/plugin.json", b"{\"name\": \"Greeter\"}");
    office.uploads(&archive(&[manifest, part("../evil.py", b"")])).await;
    page.shows("../evil.py").await;
    office.uploads(&greeter("1.0.0", json!({"api": ["channels:read"]}))).await;
    page.shows("Installed Greeter <b> 1.0.0.").await;

    page.shows("Before you enable it").await;
    page.shows("Reads channels, groups, logos and lineups.").await;
    page.shows("The action \"die\" asks for the unknown event later.").await;
    page.shows("Greets <script>people</script>.").await;
    page.until_is("no link of a plugin", "return document.querySelector('main section a')", json!(null))
        .await;
    // Without Python, it fails and says why. Python is installed, and the plugin is restarted.
    office.enables().await;
    page.shows("The plugin has failed").await;
    page.shows("plugins need Python 3.10 or newer").await;
    page.presses("All plugins").await;
    page.lists("Plugins", 1, &["Greeter <b>"]).await;
    page.until("the state in the list", ROWS, |it| it[0].as_str().is_some_and(|it| it.contains("failed")))
        .await;
    page.clicks("tbody tr td bdi", "Greeter <b>").await;
    office.installs_python();
    page.presses("Restart").await;
    page.until_is("the state", STATE, json!("ready")).await;
    page.hides("The plugin has failed").await;
    page.shows("Granted permissions").await;
    page.shows("Memory").await;
    office.failed_only_with(&["400", "409"]).await;

    page.fills("Processes and threads", "64").await;
    page.presses("Save the limits").await;
    page.shows("The limits were saved.").await;
    page.until_is("the state", STATE, json!("ready")).await;
    page.shows("of 64").await;

    page.clicks("[role=tab]", "Settings").await;
    page.shows("Nothing <u>else</u>.").await;
    let long = "const it = document.querySelector('input[name=word]');
        if (!it) return false;
        it.value = 'x'.repeat(17000);
        it.dispatchEvent(new Event('input', { bubbles: true }));
        return true";
    page.until_is("the field", long, json!(true)).await;
    page.chooses("Mode", "Long").await;
    page.fills("Key", "s3cret").await;
    page.presses("Save").await;
    page.shows("At most 16384 bytes are allowed.").await;
    let wrong = "return document.querySelector('input[name=word]').ariaInvalid";
    page.until_is("an error at the field", wrong, json!("true")).await;
    page.fills("Word", "bye").await;
    page.presses("Save").await;
    page.shows("The settings were saved.").await;
    page.shows("A value is saved. Leave this empty to keep it.").await;
    let key = "return document.querySelector('input[name=key]').value";
    page.until_is("no password", key, json!("")).await;
    page.fills("Word", "good bye").await;
    page.presses("Save").await;
    page.hides("Cancel").await;

    page.clicks("[role=tab]", "Actions 4").await;
    page.shows("Runs on: channel_start, later").await;
    page.presses("Greet <b>: Greet").await;
    page.shows("They may <u>answer</u>.").await;
    page.clicks("dialog[open] button", "Greet <b>").await;
    // The password is the one of before.
    page.shows("good bye 3 6").await;
    let runs = |statuses: &'static [&'static str]| {
        move |it: &Value| {
            let rows: Vec<&str> = it.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            rows.len() == statuses.len()
                && rows.iter().zip(statuses).all(|(row, status)| row.contains(status))
        }
    };
    page.until("the run", ROWS, runs(&["ended"])).await;

    page.presses("Run: Count").await;
    page.shows("40 %").await;
    page.shows("Halfway <u>there</u>").await;
    page.shows("{\"said\":\"hello <u>\"}").await;
    page.until_is("the state", STATE, json!("busy")).await;
    page.presses("Cancel: Count").await;
    page.until("a cancelled run", ROWS, runs(&["cancelled", "ended"])).await;
    page.until_is("the state", STATE, json!("ready")).await;
    page.presses("Run: Count").await;
    page.shows("40 %").await;
    std::fs::write(office.files().join("go"), "").unwrap();
    page.shows("Counted all").await;
    page.presses("Result: Count").await;
    page.shows("\"counted\": 12").await;
    page.clicks("dialog[open] button", "Close").await;
    page.presses("Run: Fail").await;
    page.shows("bang <u>").await;
    page.until("a failed run", ROWS, runs(&["failed", "ended", "cancelled", "ended"])).await;
    page.presses("Run: Die").await;
    page.until("a crash", ROWS, runs(&["crashed", "failed", "ended", "cancelled", "ended"])).await;
    // It starts again after a second, then after 5 s, then after 30 s.
    for n_crashes in 1..3 {
        office.until_crashed(n_crashes, "ready").await;
        page.until_is("the state", STATE, json!("ready")).await;
        page.presses("Run: Die").await;
    }
    office.until_crashed(3, "restarting").await;
    page.shows("The plugin ended and starts again").await;
    page.presses("Restart").await;
    page.until_is("the state", STATE, json!("ready")).await;
    page.hides("The plugin ended and starts again").await;
    office.failed_only_with(&["400", "409", "500", "502"]).await;

    // The runs are stored with what the actions returned.
    page.clicks("[role=tab]", "Past runs").await;
    page.until("the stored runs", ROWS, |it: &Value| it.as_array().is_some_and(|it| it.len() == 7)).await;
    page.chooses("Result", "delivered").await;
    page.until("what succeeded", ROWS, |it: &Value| it.as_array().is_some_and(|it| it.len() < 7)).await;
    page.clicks("[role=tab]", "Log").await;
    page.shows("greeted <u>once</u>").await;
    page.shows("the plugin crashed").await;

    let axe = axe();
    for tab in ["overview", "actions", "settings", "queue", "past", "log"] {
        check(&page.web, &axe, &format!("/plugins/greeter?tab={tab}")).await;
    }
    page.presses("Install another version").await;
    office
        .uploads(&greeter("1.1.0", json!({"api": ["channels:read", "streams:write"], "network": true})))
        .await;
    page.shows("Plugin 'greeter' already exists.").await;
    page.clicks("dialog[open] button", "Replace").await;
    page.shows("This version wants more permissions").await;
    let new = "return [...document.querySelectorAll('[role=alert] li')].map((it) => it.innerText)";
    let expected =
        ["Reads and changes streams.", "Connects to any host, in your network and on the Internet."];
    page.until_is("the new permissions", new, json!(expected)).await;
    office.failed_only_with(&["400"]).await;
    check(&page.web, &axe, "/plugins/greeter").await;
    office.enables().await;
    page.until_is("the state", STATE, json!("ready")).await;
    page.presses("Disable").await;
    page.until_is("the state", STATE, json!("disabled")).await;

    assert!(exists(&office.files()));
    page.presses("Delete").await;
    page.clicks("dialog[open] label", "Delete what it has stored, too").await;
    page.clicks("dialog[open] button", "Delete").await;
    page.shows("No plugins").await;
    assert!(!exists(&office.files()) && !exists(&office.data.path().join("plugins/greeter")));
    assert_eq!(office.gateway.models().plugins.load().iter().count(), 0);
    page.web.opens("/plugins/greeter").await;
    page.shows("There is no such plugin.").await;
}
