//! Processes of plugins behind the real binary.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use domain::plugin::{Manifest, Plugin, PluginGap, PluginKey};
use serde_json::{Value, json};
use storage::Store;
use storage::records::schema;

use crate::programs::n_running;
use crate::support::binary::Binary;
use crate::support::eventually;

/// A plugin with a child, which writes the id of its process group.
const CODE: &str = "
import os, time
if os.fork() == 0:
    time.sleep(1000)
class Plugin:
    def run(self, action, params, context):
        return {}
    def stop(self, context):
        open(os.path.join(context.data_dir, 'stopped'), 'w').write(context.reason)
with open(os.path.join(os.environ['HOME'], 'new'), 'w') as file:
    file.write(str(os.getpid()))
os.rename(file.name, os.path.join(os.environ['HOME'], 'pid'))
";

/// Makes a data folder with an enabled plugin that has the id 1.
pub(crate) async fn data_folder_with(code: &'static str, actions: Value) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    // A gateway that runs as root gives its plugins another user, who has to reach the data folder.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let root = folder.path().join("data");
    std::fs::create_dir(&root).unwrap();
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o700)).unwrap();
    let filled = root.clone();
    tokio::task::spawn_blocking(move || install(&filled, code, &actions)).await.unwrap();
    (folder, root)
}

/// Fills a data folder with an enabled plugin.
fn install(root: &Path, code: &str, actions: &Value) {
    let folder = root.join("plugins/demo");
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = json!({
        "name": "Demo", "version": "1", "description": "", "permissions": {}, "actions": actions,
    })
    .to_string();
    std::fs::write(folder.join("plugin.json"), &manifest).unwrap();
    std::fs::write(folder.join("plugin.py"), code).unwrap();
    let plugin = Plugin {
        id: 1,
        key: PluginKey::from_folder("demo").unwrap(),
        is_enabled: true,
        was_enabled: true,
        granted: Some(Manifest::parse(manifest.as_bytes()).unwrap().permissions),
        allowed_packages: Vec::new(),
        accepted_gaps: PluginGap::ALL.into(),
        limits: Default::default(),
        settings: Default::default(),
        version: "1".to_owned(),
        archive: None,
        reported: None,
        failed_starts: 0,
        failed: None,
        installed_at: 0,
        updated_at: 0,
    };
    let store = Store::open(&root.join("store"), &root.join("key"), schema()).unwrap();
    storage::seed(&store).unwrap();
    store.write_blocking(move |write| write.put(&plugin)).unwrap();
}

/// Starts a gateway with the plugin, and returns the process group of the plugin.
async fn start(root: &Path) -> (Binary, String) {
    let pid = root.join("plugin-data/demo/files/pid");
    let _ = std::fs::remove_file(&pid);
    let gateway = Binary::start(&["serve", "--data-dir", root.to_str().unwrap()]);
    eventually("the plugin to run", || pid.exists()).await;
    let group = std::fs::read_to_string(&pid).unwrap();
    eventually("its child to run", || n_running(&group) == 2).await;
    (gateway, group)
}

// Holds T-life.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_end_with_the_gateway_and_none_starts_in_safe_mode() {
    let (_folder, root) = data_folder_with(CODE, json!([])).await;

    let (mut gateway, group) = start(&root).await;
    gateway.signal("KILL");
    assert_eq!(gateway.ended().await.code(), None);
    eventually("the plugin to end with the gateway", || n_running(&group) == 0).await;

    let (mut gateway, group) = start(&root).await;
    gateway.signal("TERM");
    assert_eq!(gateway.ended().await.code(), Some(0));
    assert_eq!(n_running(&group), 0);
    let stopped = root.join("plugin-data/demo/files/stopped");
    assert_eq!(std::fs::read_to_string(stopped).unwrap(), "shutdown");

    let pid = root.join("plugin-data/demo/files/pid");
    std::fs::remove_file(&pid).unwrap();
    let gateway = Binary::start(&["serve", "--safe-mode", "--data-dir", root.to_str().unwrap()]);
    gateway.address().await;
    eventually("the decision not to start plugins", || gateway.output().contains("no plugin starts")).await;
    drop(gateway);
    assert!(!pid.exists(), "the plugin did not start");
}
