//! The folder that a plugin writes beside its code.

use super::*;

/// Counts its runs in a file beside the code, tries to change its own code there, and reports what it sees.
const WRITER: &str = "import json, os, sys\nfrom pathlib import Path\nsys.path.insert(0, os.path.dirname(__file__))\n\
    import helper\nfrom . import parts\nHERE = Path(__file__).parent\n\
    def read(name):\n    path = HERE / name\n    return path.read_text() if path.exists() else None\n\
    class Plugin:\n    def run(self, action, params, context):\n        if action == 'stop':\n            return\n\
    \x20       runs = int(read('runs.txt') or 0) + 1\n        (HERE / 'runs.txt').write_text(str(runs))\n\
    \x20       (HERE / 'helper.py').write_text('VERSION = 0')\n        (HERE / 'late.py').write_text('')\n\
    \x20       (HERE / 'settings.json').write_text('mine')\n\
    \x20       try:\n            import late\n            late = True\n        except ImportError:\n            late = False\n\
    \x20       return {'runs': runs, 'helper': helper.VERSION, 'late': late, 'table': read('table.csv'), 'gone': read('gone.csv'),\n\
    \x20           'settings': read('settings.json.old'), 'parts': Path(parts.__file__).parent.name, 'folder': HERE.name}\n";

fn write_version(folder: &Path, version: u32) {
    write_code(folder, WRITER, json!({ "version": version.to_string() }));
    fs::create_dir_all(folder.join("parts")).unwrap();
    fs::write(folder.join("parts/__init__.py"), "").unwrap();
    fs::write(folder.join("helper.py"), format!("VERSION = {version}")).unwrap();
    fs::write(folder.join("table.csv"), version.to_string()).unwrap();
    fs::write(folder.join("settings.json"), "default").unwrap();
    match version {
        1 => fs::write(folder.join("gone.csv"), "1").unwrap(),
        _ => fs::remove_file(folder.join("gone.csv")).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_writes_beside_its_code_stays_and_never_runs_as_its_code() {
    let mut bench = Bench::new();
    let key = bench.install("my-writer", WRITER, json!({}));
    let code = bench.settings.folders.code.join("my-writer");
    write_version(&code, 1);
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let seen = |runs: u32, helper: u32, gone: Value| {
        json!({"runs": runs, "helper": helper, "late": false, "table": helper.to_string(), "gone": gone,
            "settings": null, "parts": "parts", "folder": "my-writer"})
    };
    assert_eq!(bench.returned(&key, "main").await, seen(1, 1, json!("1")));
    bench.plugins.reload(&key).await.unwrap();
    assert_eq!(bench.returned(&key, "main").await, seen(2, 1, json!("1")), "after a reload");
    bench.start_again().await;
    bench.until(&key, PluginState::Ready).await;
    assert_eq!(bench.returned(&key, "main").await, seen(3, 1, json!("1")), "after a restart of the gateway");
    let install = async {
        write_version(&code, 2);
        Ok::<_, PluginError>(())
    };
    bench.plugins.update(&key, install, async {}).await.unwrap();
    assert_eq!(bench.returned(&key, "main").await, seen(4, 2, Value::Null), "after an update");
    assert_eq!(
        fs::read_to_string(code.join("helper.py")).unwrap(),
        "VERSION = 2",
        "its code is as installed"
    );
    assert!(!code.join("runs.txt").exists());

    let files = bench.settings.folders.data.join("my-writer/files");
    assert_eq!(fs::read_to_string(files.join("plugins/my-writer/settings.json")).unwrap(), "mine");
    fs::write(code.join("settings.json"), "another default").unwrap();
    bench.plugins.reload(&key).await.unwrap();
    let replaced = bench.returned(&key, "main").await;
    assert_eq!(
        replaced["settings"], "mine",
        "a changed file that the package changes, too, is kept: {replaced}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn files_beside_the_code_count_as_files_of_the_plugin() {
    let bench = Bench::with(|it| it.timings.answer = PATIENCE);
    let code = acting(
        "from pathlib import Path\n\
         for n in range(40):\n    Path(__file__).with_name(str(n)).write_bytes(bytes(1 << 20))\n\
         time.sleep(1000)",
    );
    let key = bench.install("demo", &code, json!({"limits": {"data_mib": 20}}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let RunResult::Crashed(reason) = bench.run(&key, "main").await else { panic!("it wrote 40 MiB") };
    assert!(reason.ends_with("more than 20 MiB of files"), "{reason}");
}

/// A plugin can write any list and any link there. Its own process copies, so that neither leads out of its files.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_folder_beside_the_code_is_made_whole_and_leads_nowhere_else() {
    let bench = Bench::new();
    let outside = bench.folder.path().join("open/file");
    let code = acting(&format!(
        "from pathlib import Path\nhere = Path(__file__).parent\n\
         (here.parent / '.package.json').write_text(json.dumps({{'../../../../../../open/file': {{'sha256': 1}}, 'x': 3}}))\n\
         (here / 'table.csv').unlink()\n(here / 'table.csv').symlink_to({:?})\nreturn {{}}",
        outside.display().to_string()
    ));
    let key = bench.install("demo", &code, json!({}));
    fs::write(bench.settings.folders.code.join("demo/table.csv"), "1").unwrap();
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    bench.returned(&key, "main").await;
    bench.plugins.reload(&key).await.unwrap();
    bench.until(&key, PluginState::Ready).await;
    let table = bench.settings.folders.data.join("demo/files/plugins/demo/table.csv");
    assert!(fs::symlink_metadata(&table).unwrap().is_file());
    assert_eq!(fs::read_to_string(table).unwrap(), "1");
    assert_eq!(fs::read_to_string(outside).unwrap(), "secret");
}

/// Existing plugins name the data folder of their host. The machine may have such a folder, too.
#[tokio::test(flavor = "multi_thread")]
async fn paths_below_data_are_files_of_the_plugin_unless_they_are_granted() {
    let bench = Bench::new();
    let code = acting(
        "from pathlib import Path\nimport shutil, tempfile\n\
         os.makedirs('/data/exports', exist_ok=True)\n\
         with open('/data/exports/a.csv', 'w') as file:\n    file.write('1')\n\
         Path('/data/plugins/demo/notes').write_text('2')\n\
         shutil.copyfile('/data/exports/a.csv', '/data/exports/b.csv')\n\
         os.replace(b'/data/exports/b.csv', '/data/exports/../exports/c.csv')\n\
         with tempfile.NamedTemporaryFile(dir='/data/exports'):\n    n_files = len(list(Path('/data/exports').iterdir()))\n\
         refused = []\n\
         for path in ['/data/../etc/written', '/database/x', '/data/granted-elsewhere/x']:\n\
         \x20   try:\n        open(path, 'w').close()\n    except OSError:\n        refused.append(path)\n\
         return {'names': sorted(os.listdir('/data/exports')), 'n': n_files, 'refused': refused,\n\
         \x20   'notes': Path(__file__).with_name('notes').read_text(), 'is_there': os.path.isfile('/data/exports/a.csv')}",
    );
    let granted = json!({"permissions": {"files": ["/data/granted-elsewhere:write"]}});
    let key = bench.install("demo", &code, granted);
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let expected = json!({"names": ["a.csv", "c.csv"], "n": 3, "notes": "2", "is_there": true,
        "refused": ["/data/../etc/written", "/database/x", "/data/granted-elsewhere/x"]});
    assert_eq!(bench.returned(&key, "main").await, expected);
    let exports = bench.settings.folders.data.join("demo/files/exports");
    assert_eq!(fs::read_to_string(exports.join("c.csv")).unwrap(), "1");
}
