//! Limits of what a plugin may use.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn floods_end_the_process_and_prints_do_not() {
    let bench = Bench::new();
    let descriptor = "fd = next(it for it in range(3, 64) if os.path.exists(f'/proc/self/fd/{it}') and os.readlink(f'/proc/self/fd/{it}').startswith('pipe:') and os.get_blocking(it) and not os.readlink(f'/proc/self/fd/{it}') in (os.readlink('/proc/self/fd/1'),) and __import__('fcntl').fcntl(it, 3) & 1)\n";
    let code = acting(&format!(
        "{descriptor}how = params['how']\nif how == 'long':\n    os.write(fd, b'x' * (1 << 22))\n\
         elif how == 'wrong':\n    os.write(fd, b'hello\\n')\nelif how == 'many':\n    for _ in range(2000):\n        context['progress'](1)\n\
         elif how == 'print':\n    for _ in range(100000):\n        print('x' * 100)\n    return {{'printed': True}}\ntime.sleep(1000)"
    ));
    let key = bench.install("demo", &code, json!({}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let printed = bench.run_with(&key, "main", json!({"how": "print"})).await;
    assert_eq!(printed, RunResult::Returned(json!({"printed": true})));
    for (how, expected) in [
        ("long", "it sent a line of more than 1 MiB"),
        ("wrong", "it sent a line that does not follow the protocol"),
        ("many", "it sent more than 1000 messages in a second"),
    ] {
        let RunResult::Crashed(reason) = bench.run_with(&key, "main", json!({"how": how})).await else {
            panic!("{how}");
        };
        assert_eq!(reason, format!("the plugin crashed: {expected}"));
        bench.plugins.restart(&key).await.unwrap();
    }
    let folder = OwnFolders::new(&bench.settings.folders, "demo").logs;
    assert!(usage::folder_bytes(&folder) < 11 << 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_processes_and_files_have_limits() {
    let bench = Bench::with(|it| it.timings.answer = PATIENCE);
    let code = acting(
        "how = params['how']\n\
         if how == 'memory':\n    it = []\n    while True:\n        it.append(bytearray(1 << 20))\n        time.sleep(0.002)\n\
         if how == 'reserve':\n    try:\n        bytearray(1 << 34)\n    except MemoryError:\n        return {'refused': True}\n\
         if how == 'forks':\n    n = 0\n    try:\n        while n < 1000:\n            if os.fork() == 0:\n                time.sleep(1000)\n                os._exit(0)\n            n += 1\n    except OSError:\n        return {'forks': n}\n\
         if how == 'files':\n    try:\n        with open(os.path.join(context.data_dir, 'large'), 'wb') as file:\n            file.truncate(64 << 20)\n    except OSError as error:\n        return {'errno': error.errno}\n\
         if how == 'many':\n    for n in range(40):\n        with open(os.path.join(context.data_dir, str(n)), 'wb') as file:\n            file.write(bytes(1 << 20))\n    time.sleep(1000)\n\
         if how == 'open':\n    try:\n        it = [open('/dev/null') for _ in range(1000)]\n    except OSError as error:\n        return {'errno': error.errno}\n",
    );
    let limits = json!({"memory_mib": 200, "processes": 40, "data_mib": 20, "open_files": 50});
    let key = bench.install("demo", &code, json!({"limits": limits}));
    let quiet = bench.install("quiet", &acting("return {'pid': os.getpid()}"), json!({}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    bench.until(&quiet, PluginState::Ready).await;
    let quiet_before = bench.returned(&quiet, "main").await;
    let run = async |how: &str| bench.run_with(&key, "main", json!({ "how": how })).await;
    assert_eq!(run("reserve").await, RunResult::Returned(json!({"refused": true})));
    assert_eq!(run("open").await, RunResult::Returned(json!({"errno": 24})));
    let RunResult::Returned(forks) = run("forks").await else { panic!("no answer") };
    let n_forks = forks["forks"].as_u64().unwrap();
    assert!((1..1_000).contains(&n_forks), "{n_forks}");
    let pid = bench.plugins.state(&key).unwrap().pid.unwrap();
    let used = bench.plugins.resources(&key).await.unwrap();
    assert!(used.processes >= 1 && used.memory_bytes > 0, "{used:?}");
    bench.plugins.restart(&key).await.unwrap();
    assert!(is_gone(pid), "all forks ended with the group");
    // A file that is too large ends the process by SIGXFSZ, which Python ignores: the call fails.
    assert_eq!(run("files").await, RunResult::Returned(json!({"errno": 27})));
    for (how, expected) in [("memory", "more than 200 MiB of memory"), ("many", "more than 20 MiB of files")]
    {
        let RunResult::Crashed(reason) = run(how).await else { panic!("{how}") };
        assert!(reason.ends_with(expected), "{reason}");
        let files = OwnFolders::new(&bench.settings.folders, "demo").data;
        fs::remove_dir_all(files).unwrap();
        bench.plugins.restart(&key).await.unwrap();
    }
    assert_eq!(bench.returned(&quiet, "main").await, quiet_before, "the other plugin has the same process");
}
