//! Permissions: a plugin does what they name, and nothing else.

use super::*;

/// Attempts of a plugin, each a Python expression that returns or raises.
const ATTEMPTS: [(&str, &str); 21] = [
    ("read-key", "open(ROOT + '/data/key').read()"),
    ("read-store", "open(ROOT + '/data/store/db').read()"),
    ("list-data", "os.listdir(ROOT + '/data')"),
    ("read-storage", "open(ROOT + '/data/plugin-data/demo/storage.json').read()"),
    ("read-other-plugin", "open(ROOT + '/data/plugins/quiet/plugin.py').read()"),
    ("read-recording", "open(ROOT + '/recordings/film.ts').read()"),
    ("read-users", "open('/etc/passwd').read()"),
    ("read-memory-of-gateway", "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)"),
    ("read-environment-of-gateway", "open(f'/proc/{os.getppid()}/environ').read()"),
    ("change-own-code", "open(ROOT + '/data/plugins/demo/plugin.py', 'a').write('x')"),
    ("write-elsewhere", "open('/tmp/plugin-was-here', 'w')"),
    ("signal-gateway", "os.kill(os.getppid(), 0)"),
    ("become-root", "os.setuid(0)"),
    ("connect", "socket.create_connection(('127.0.0.1', PORT), 5)"),
    ("listen", "socket.socket().bind(('127.0.0.1', 0))"),
    ("datagram", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"),
    ("local-socket", "socket.socket(socket.AF_UNIX)"),
    ("execute", "subprocess.run(['/bin/sh', '-c', 'true'], check=True)"),
    ("execute-own-file", "own_program(context)"),
    ("new-namespace", "unshare()"),
    ("trace", "trace()"),
];

fn attempting(root: &Path, port: u16) -> String {
    let attempts: String =
        ATTEMPTS.iter().map(|(name, code)| format!("    ('{name}', lambda context: {code}),\n")).collect();
    format!(
        "import ctypes, os, shutil, socket, subprocess, sys\nROOT, PORT = {:?}, {port}\n\
         def own_program(context):\n    path = os.path.join(context.data_dir, 'program')\n    with open(path, 'w') as file:\n        file.write('#!' + sys.executable + '\\n')\n    os.chmod(path, 0o755)\n    subprocess.run([path], check=True, timeout=60)\n\
         def checked(result):\n    if result != 0:\n        raise OSError(ctypes.get_errno(), 'refused')\n\
         libc = ctypes.CDLL(None, use_errno=True)\n\
         def unshare():\n    checked(libc.unshare(0x10000000))\n\
         def trace():\n    checked(libc.ptrace(16, os.getppid(), 0, 0))\n\
         ATTEMPTS = [\n{attempts}]\n\
         class Plugin:\n    def run(self, action, params, context):\n        done = []\n        for name, attempt in ATTEMPTS:\n            try:\n                attempt(context)\n                done.append(name)\n            except (OSError, subprocess.SubprocessError):\n                pass\n        os.setsid()\n        return {{'done': done, 'uid': os.getuid(), 'groups': os.getgroups(), 'group': os.getpgid(0), 'pid': os.getpid(),\n                'privileges': [it for it in open('/proc/self/status') if it.startswith(('CapEff', 'NoNewPrivs', 'Seccomp:'))]}}\n",
        root.display().to_string(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_without_permissions_escapes_nowhere() {
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let key = bench.install("demo", &attempting(bench.folder.path(), port), json!({}));
    bench.install("quiet", &acting("return {}"), json!({}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let report = bench.returned(&key, "main").await;
    let mut done: Vec<&str> = report["done"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let is_root = rustix::process::geteuid().is_root();
    // These do not depend on Landlock.
    assert_ne!(report["uid"], json!(0));
    assert_eq!(report["group"], report["pid"], "it cannot leave its process group");
    let privileges = report["privileges"].to_string();
    assert!(
        privileges.contains("NoNewPrivs:\\t1") && privileges.contains("CapEff:\\t0000000000000000"),
        "{privileges}"
    );
    assert!(privileges.contains("Seccomp:\\t2"), "{privileges}");
    if !can_restrict_files() {
        // What is left without Landlock: other users for a gateway that runs as root, and the filters.
        eprintln!("this kernel has no Landlock; seen instead: {done:?}");
        let filtered =
            ["become-root", "connect", "listen", "datagram", "local-socket", "new-namespace", "trace"];
        assert!(!done.iter().any(|it| filtered.contains(it)), "{report:#}");
        let secrets = ["read-key", "read-store", "list-data", "read-storage"];
        assert!(!is_root || !done.iter().any(|it| secrets.contains(it)), "{report:#}");
        return;
    }
    if !scopes_signals() && !is_root {
        eprintln!("this kernel does not restrict signals (Linux 6.12)");
        done.retain(|it| *it != "signal-gateway");
    }
    assert_eq!(done, Vec::<&str>::new(), "{report:#}");
}

/// Returns whether the kernel can forbid signals to other processes (Linux 6.12).
fn scopes_signals() -> bool {
    let version = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = version.split(['.', '-']).filter_map(|it| it.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(12))
}

#[tokio::test(flavor = "multi_thread")]
async fn permissions_allow_what_they_name_and_nothing_else() {
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // A free port of this moment; binding it tells refusals of the kernel from ports in use.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let code = attempting(bench.folder.path(), port)
        + &format!(
            "ATTEMPTS += [('listen-at-port', lambda context: serve({free})), ('read-open', lambda context: open(ROOT + '/open/file').read()), ('run-ls', lambda context: subprocess.run(['ls', context.data_dir], check=True))]\n\
             def serve(port):\n    server = socket.socket()\n    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n    server.bind(('127.0.0.1', port))\n    server.listen()\n"
        );
    let done = async |key: &str, permissions: Value| {
        let manifest = match permissions.is_null() {
            true => json!({"permissions": null}),
            false => json!({"permissions": permissions}),
        };
        let key = bench.install(key, &code, manifest);
        bench.plugins.reload(&key).await.unwrap();
        let report = bench.returned(&key, "main").await;
        report["done"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    bench.start();
    let network = done("network", json!({"network": true})).await;
    assert!(
        network.contains(&"connect".to_owned()) && network.contains(&"datagram".to_owned()),
        "{network:?}"
    );
    assert!(!network.contains(&"local-socket".to_owned()), "{network:?}");
    let open = bench.folder.path().join("open").display().to_string();
    let listen = done("listen", json!({"listen": [free], "programs": ["ls"], "files": [open]})).await;
    if can_restrict_files() {
        assert_eq!(listen, ["listen-at-port", "read-open", "run-ls"]);
        assert!(!network.contains(&"listen-at-port".to_owned()), "Linux 6.7 restricts ports: {network:?}");
    }
    let undeclared = done("undeclared", Value::Null).await;
    for name in ["connect", "listen", "listen-at-port", "execute", "read-open"] {
        assert!(undeclared.contains(&name.to_owned()), "{name}: {undeclared:?}");
    }
    if can_restrict_files() {
        for name in
            ["read-key", "read-store", "read-storage", "change-own-code", "trace", "read-memory-of-gateway"]
        {
            assert!(!undeclared.contains(&name.to_owned()), "{name}: {undeclared:?}");
        }
    }
}

/// A version that declared fewer permissions ran with those of the version before it.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_keeps_no_permission_that_it_does_not_declare() {
    let bench = Bench::new();
    let code = acting(
        "def connect():\n    try:\n        socket.socket()\n        return True\n    except OSError:\n        return False\n\
         return {'socket': connect(), 'scopes': context.api('GET', '/x/')['body']['scopes']}",
    );
    let wide = json!({"permissions": {"network": true, "api": ["channels:write", "vod:read"]}});
    let key = bench.install("demo", &code, wide);
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let before = bench.returned(&key, "main").await;
    assert_eq!(before, json!({"socket": true, "scopes": {"scopes": ["channels:write", "vod:read"]}}));
    let folder = bench.settings.folders.code.join("demo");
    let install = async {
        write_code(&folder, &code, json!({"permissions": {"api": ["channels:read"]}}));
        Ok::<_, PluginError>(())
    };
    bench.plugins.update(&key, install, async {}).await.unwrap();
    let after = bench.returned(&key, "main").await;
    assert_eq!(after, json!({"socket": false, "scopes": {"scopes": ["channels:read"]}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_with_new_gaps_does_not_start_until_an_admin_accepts_them() {
    let bench = Bench::new();
    let key = bench.install("demo", &acting("return {}"), json!({}));
    let gaps = |accepted: BTreeSet<PluginGap>| {
        bench.records.records.lock().get_mut(&key).unwrap().accepted_gaps = accepted;
    };
    gaps(BTreeSet::new());
    bench.start();
    let open = bench.plugins.gaps(&Permissions::none());
    if open.is_empty() {
        eprintln!("everything is enforced here");
        bench.until(&key, PluginState::Ready).await;
        return;
    }
    let status = bench.until(&key, PluginState::Failed).await;
    let reason = status.reason.unwrap();
    assert!(open.iter().all(|it| reason.contains(it.sentence())), "{reason}");
    assert!(bench.records.records.lock()[&key].failed.is_none(), "a newer kernel starts it again");
    gaps(open);
    bench.plugins.restart(&key).await.unwrap();
    bench.until(&key, PluginState::Ready).await;
}
