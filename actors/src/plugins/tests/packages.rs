//! The code of plugins: versions, Python, packages and other programs.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_old_code_returns_if_the_new_one_does_not_start() {
    let bench = Bench::new();
    let key = bench.install("demo", &acting("return {'version': 1}"), json!({}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let code = bench.settings.folders.code.join("demo");
    let update = async |new: String| {
        let install = async {
            write_code(&code, &new, json!({}));
            Ok::<_, PluginError>("installed")
        };
        let undo = async { write_code(&code, &acting("return {'version': 1}"), json!({})) };
        bench.plugins.update(&key, install, undo).await
    };
    let broken = update("raise RuntimeError('broken')".to_owned()).await;
    let Err(PluginError::NotReady(reason)) = broken else { panic!("the broken version started") };
    assert!(reason.contains("the old one is back") && reason.contains("broken"), "{reason}");
    assert_eq!(bench.returned(&key, "main").await, json!({"version": 1}));
    assert_eq!(update(acting("return {'version': 2}")).await, Ok("installed"));
    assert_eq!(bench.returned(&key, "main").await, json!({"version": 2}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_python_says_what_to_install() {
    let bench = Bench::with(|it| it.python = Some("/no/such/python".to_owned()));
    let key = bench.install("demo", &acting("return {}"), json!({}));
    bench.start();
    let reason = bench.until(&key, PluginState::Failed).await.reason.unwrap();
    assert!(
        reason.contains("plugins need Python 3.10 or newer") && reason.contains("/no/such/python"),
        "{reason}"
    );
    assert!(bench.records.notes.lock().is_empty(), "nothing is stored: the next start may find one");
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_of_any_shape_load() {
    let bench = Bench::new();
    bench.start();
    let manifest = json!({"fields": null, "actions": null});
    let package = bench.install("with-hyphen", "raise RuntimeError('not this one')", manifest.clone());
    let folder = bench.settings.folders.code.join("with-hyphen");
    fs::write(folder.join("plugin.py"), "from .helper import VALUE\nfrom helper import VALUE as SAME\nclass Plugin:\n    name = 'Shaped'\n    fields = [{'id': 'x', 'label': 'X', 'type': 'number', 'default': 7}]\n    actions = [{'id': 'main', 'label': 'Main'}]\n    def run(self, action, params, context):\n        return [VALUE, SAME, context['settings'].get('x')]\n").unwrap();
    fs::write(folder.join("helper.py"), "VALUE = 5\n").unwrap();
    bench.plugins.reload(&package).await.unwrap();
    assert_eq!(bench.returned(&package, "main").await, json!({"status": "ok", "result": [5, 5, 7]}));
    let reported = bench.records.installed(&package).unwrap().record.reported.unwrap();
    assert_eq!((reported.name.as_deref(), reported.actions.len()), (Some("Shaped"), 1));

    fs::write(folder.join("__init__.py"), "from .plugin import Plugin\n").unwrap();
    bench.plugins.reload(&package).await.unwrap();
    assert_eq!(bench.returned(&package, "main").await["result"], json!([5, 5, 7]));
}

#[tokio::test(flavor = "multi_thread")]
async fn bundled_wheels_are_unpacked_and_missing_packages_named() {
    let bench = Bench::new();
    let code = "from bundled_package import VALUE\n".to_owned() + &acting("return {'value': VALUE}");
    let manifest = json!({"requirements": ["Bundled.Package>=1", "another-one==2"]});
    let key = bench.install("demo", &code, manifest.clone());
    let wheels = bench.settings.folders.code.join("demo/wheels");
    fs::create_dir(&wheels).unwrap();
    let make = |name: &str, entries: &[(&str, &str)]| {
        let script = "import json, sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as it:\n    [it.writestr(*entry) for entry in json.loads(sys.argv[2])]";
        let entries = json!(entries).to_string();
        let path = wheels.join(name);
        let status =
            std::process::Command::new("python3").args(["-c", script]).arg(path).arg(entries).status();
        assert!(status.unwrap().success());
    };
    make("bundled_package-1.0-py3-none-any.whl", &[("bundled_package/__init__.py", "VALUE = 9")]);
    make("bundled_package-2.0-cp27-cp27m-win32.whl", &[("bundled_package/__init__.py", "VALUE = 'wrong'")]);
    bench.start();
    let reason = bench.until(&key, PluginState::Failed).await.reason.unwrap();
    assert!(reason.contains("another-one==2") && !reason.contains("Bundled"), "{reason}");
    make("another_one-2-py2.py3-none-any.whl", &[("another_one-2.data/purelib/another_one.py", "")]);
    bench.plugins.restart(&key).await.unwrap();
    assert_eq!(bench.returned(&key, "main").await, json!({"value": 9}));
    let made = bench.settings.folders.data.join("demo/environment");
    assert!(made.join("another_one.py").exists());

    make("evil-1-py3-none-any.whl", &[("../../../escaped", "")]);
    let Err(PluginError::NotReady(reason)) = bench.plugins.reload(&key).await else { panic!("it started") };
    assert!(reason.contains("evil-1-py3-none-any.whl contains the unsafe name"), "{reason}");
    assert!(!bench.folder.path().join("data/escaped").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_may_be_any_program() {
    let bench = Bench::new();
    let script = "#!/bin/sh\nread -r line\necho '{\"id\":1,\"result\":{\"protocol\":1}}'\nread -r line\necho '{\"id\":2,\"result\":{\"status\":\"ok\"}}'\nread -r line\n";
    let key = bench.install("shell", "", json!({"command": ["./run.sh"]}));
    let path = bench.settings.folders.code.join("shell/run.sh");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    assert_eq!(bench.returned(&key, "main").await, json!({"status": "ok"}));
}
