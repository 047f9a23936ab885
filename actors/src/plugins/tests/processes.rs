//! Runs, crashes and hangs: when a process starts, and when it ends.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_runs_actions_with_settings_storage_progress_and_messages() {
    let bench = Bench::new();
    let code = acting(
        "if action == 'stop':\n    context['storage'].set('stopped', context['reason'])\n    return\n\
         context['progress'](40, 'halfway')\n\
         context['publish']({'news': 1})\n\
         context['logger'].info('the password is %s', context['settings']['password'])\n\
         print('printed')\n\
         sys.stdout.write('{\"id\":2,\"result\":\"no answer\"}\\n')\n\
         os.system('true')\n\
         context.storage.set('count', context.storage.get('count', 0) + 1)\n\
         return {'settings': context['settings'], 'count': context.storage.get('count'),\n        'stopped': context.storage.get('stopped'), 'params': params, 'key': context.plugin_key,\n        'actions': sorted(context['actions'])}",
    );
    let key = bench.install("demo", &code, json!({}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let RunResult::Returned(value) = bench.run_with(&key, "main", json!({"x": [1]})).await else {
        panic!("{:#?}", bench.plugins.logs(&key, 50).await);
    };
    assert_eq!(value["settings"], json!({"greeting": "hello", "extra": 3, "password": "hunter22"}));
    assert_eq!(
        (&value["count"], &value["params"], &value["key"]),
        (&json!(1), &json!({"x": [1]}), &json!("demo"))
    );
    assert_eq!(value["actions"], json!(["main", "other", "stop"]));
    let progress = bench.plugins.jobs(&key)[0].clone();
    assert_eq!((progress.percent, progress.message.as_deref()), (Some(40.0), Some("halfway")));
    let messages = bench
        .records
        .notifications
        .lock()
        .iter()
        .filter(|it| matches!(it, PluginNotification::Message { .. }))
        .count();
    assert_eq!(messages, 1);
    eventually("the printed line", || {
        let folder = OwnFolders::new(&bench.settings.folders, "demo").logs;
        log::last_lines(&folder, 50).iter().any(|it| it.ends_with("output printed"))
    })
    .await;
    let log = bench.plugins.logs(&key, 50).await.join("\n");
    assert!(log.contains("info the password is …") && !log.contains("hunter22"), "{log}");

    assert_eq!(bench.run(&key, "nothing").await, RunResult::UnknownAction);
    let unknown = PluginKey::from_folder("unknown").unwrap();
    let refused = bench.plugins.run(&unknown, "main", Map::new(), RunCause::Button).await;
    assert_eq!(refused, Err(RunRefusal::UnknownPlugin));

    // The action `stop` runs, and what it stored is there for the next process.
    let pid = bench.plugins.state(&key).unwrap().pid.unwrap();
    bench.plugins.restart(&key).await.unwrap();
    assert!(is_gone(pid));
    let value = bench.returned(&key, "main").await;
    assert_eq!((&value["count"], &value["stopped"]), (&json!(2), &json!("restart")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_takes_the_place_of_another_keeps_the_files() {
    let bench = Bench::new();
    let code = acting(
        "folder = context['data_dir']\n\
         if not os.listdir(folder + '/many'):\n    for it in range(500): open(f'{folder}/many/{it}', 'w').close()\n\
         paths = [folder] + [entry.path for entry in os.scandir(folder + '/many')]\n\
         return {'owned': sum(os.stat(it).st_uid == os.getuid() for it in paths), 'pid': os.getpid()}",
    );
    let key = bench.install("demo", &code, json!({}));
    fs::create_dir_all(OwnFolders::new(&bench.settings.folders, "demo").data.join("many")).unwrap();
    bench.start();
    let mut before = bench.returned(&key, "main").await;
    for _ in 0..20 {
        bench.plugins.stop(&key, "test").await.unwrap();
        let (first, second) = tokio::join!(bench.plugins.reload(&key), bench.plugins.reload(&key));
        assert_eq!((first, second), (Ok(()), Ok(())));
        let after = bench.returned(&key, "main").await;
        assert_ne!(before["pid"], after["pid"]);
        assert_eq!(after["owned"], 501, "{after}");
        before = after;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exception_is_an_answer_and_a_crash_ends_only_the_process() {
    let bench = Bench::new();
    let code =
        acting("if params.get('crash'):\n    os.kill(os.getpid(), 9)\nraise ValueError('no such list')");
    let key = bench.install("demo", &code, json!({}));
    let other = bench.install("quiet", &acting("return {'status': 'ok'}"), json!({}));
    bench.start();
    bench.until(&other, PluginState::Ready).await;
    let quiet = bench.returned(&other, "other").await;
    assert_eq!(bench.run(&key, "main").await, RunResult::Raised("no such list".to_owned()));
    let before = bench.returned(&key, "other").await;
    let crashed = bench.run_with(&key, "main", json!({"crash": true})).await;
    assert_eq!(crashed, RunResult::Crashed("the plugin crashed: it was ended by signal 9".to_owned()));
    let after = bench.returned(&key, "other").await;
    assert_ne!(before, after, "a new process");
    assert_eq!(bench.plugins.state(&key).unwrap().crashes, 1);
    assert_eq!(bench.returned(&other, "other").await, quiet, "the other plugin has the same process");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_crashes_are_a_failure_until_an_admin_restarts() {
    let mut bench = Bench::new();
    let key =
        bench.install("demo", "import sys\nprint('cannot go on', file=sys.stderr)\nsys.exit(4)", json!({}));
    bench.start();
    let failed = bench.until(&key, PluginState::Failed).await;
    let reason = failed.reason.unwrap();
    assert!(reason.starts_with("it crashed five times in ten minutes: "), "{reason}");
    assert_eq!(failed.crashes, 5);
    let refused = bench.plugins.run(&key, "main", Map::new(), RunCause::Button).await;
    assert_eq!(refused, Err(RunRefusal::Failed(reason.clone())));

    // The failure is stored: the next gateway does not start it.
    bench.start_again().await;
    let failed = bench.until(&key, PluginState::Failed).await;
    assert_eq!((failed.reason.as_ref(), failed.crashes), (Some(&reason), 0));
    write_code(&bench.settings.folders.code.join("demo"), &acting("return {}"), json!({}));
    bench.plugins.restart(&key).await.unwrap();
    assert_eq!(bench.returned(&key, "main").await, json!({}));
    assert_eq!(bench.records.installed(&key).unwrap().record.failed, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_crashes_at_three_starts_of_the_gateway_has_failed() {
    // With long pauses, each gateway sees one crash.
    let mut bench = Bench::with(|it| it.timings.pause_divisor = 1);
    let key = bench.install("demo", "raise RuntimeError('never')", json!({}));
    bench.start();
    for n in 1..3 {
        let crashed = bench.until(&key, PluginState::Restarting).await;
        assert!(crashed.reason.unwrap().contains("never"));
        assert_eq!(bench.records.installed(&key).unwrap().record.failed_starts, n);
        bench.start_again().await;
    }
    let reason = bench.until(&key, PluginState::Failed).await.reason.unwrap();
    assert!(reason.starts_with("it crashed after 3 starts of the gateway in a row: "), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_runs_and_processes_end_and_others_go_on() {
    let bench = Bench::with(|it| {
        it.timings.cancel = Duration::from_millis(200);
        it.timings.answer = Duration::from_millis(200);
    });
    let code = acting(
        "if params.get('polite'):\n    while not context.cancelled():\n        time.sleep(0.01)\n    return {}\ntime.sleep(1000)",
    );
    let actions = json!([{"id": "main", "label": "m", "timeout": 1}, {"id": "other", "label": "o"}]);
    let key = bench.install("demo", &code, json!({"actions": actions, "concurrency": 2}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let begin = async |params: Value| {
        let Value::Object(params) = params else { unreachable!() };
        match bench.plugins.run(&key, "main", params, RunCause::Schedule).await {
            Ok(RunAnswer::Running(run)) => run,
            other => panic!("{other:?}"),
        }
    };
    let polite = begin(json!({"polite": true})).await;
    assert_eq!(bench.plugins.state(&key).unwrap().state, PluginState::Busy);
    let ended = |run: Uuid| match bench.plugins.job(run).unwrap().stage {
        RunStage::Ended(result) => Some(result),
        _ => None,
    };
    eventually("the time-out of a polite run", || ended(polite).is_some()).await;
    assert_eq!(ended(polite), Some(RunResult::TimedOut));
    assert_eq!(bench.plugins.state(&key).unwrap().crashes, 0, "it ended when it was asked to");
    let cancelled = begin(json!({"polite": true})).await;
    bench.plugins.cancel(&key, cancelled).unwrap();
    eventually("the cancellation", || ended(cancelled).is_some()).await;
    assert_eq!(ended(cancelled), Some(RunResult::Cancelled));

    let hanging = begin(json!({})).await;
    eventually("the end of a run that hangs", || ended(hanging).is_some()).await;
    assert_eq!(ended(hanging), Some(RunResult::TimedOut));
    eventually("the crash", || bench.plugins.state(&key).unwrap().crashes == 1).await;
    bench.until(&key, PluginState::Ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_does_not_answer_pings_hangs() {
    let bench = Bench::with(|it| {
        it.timings.ping = Duration::from_millis(10);
        it.timings.hang = Duration::from_secs(2);
        it.timings.answer = PATIENCE;
    });
    // The process is stopped as a whole, as one that waits for a dead disk.
    let key =
        bench.install("demo", &acting("os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(1000)"), json!({}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let pid = bench.plugins.state(&key).unwrap().pid.unwrap();
    let RunResult::Crashed(reason) = bench.run(&key, "main").await else { panic!("it did not crash") };
    assert_eq!(reason, "the plugin crashed: it has not answered for 2 s");
    eventually("the end of the process", || is_gone(pid)).await;
}

/// `HEADWATER_CRASHES` sets how many; 20 by default.
#[tokio::test(flavor = "multi_thread")]
async fn many_crashes_leak_nothing() {
    let bench = Bench::new();
    let key = bench.install(
        "demo",
        &acting("if params.get('forks') and os.fork() == 0:\n    time.sleep(1000)\nos._exit(1)"),
        json!({}),
    );
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let n_files = || fs::read_dir("/proc/self/fd").unwrap().count();
    let mut groups = Vec::new();
    let mut before = 0;
    let n_crashes = std::env::var("HEADWATER_CRASHES").map_or(20, |it| it.parse().unwrap());
    for n in 0..n_crashes {
        groups.push(bench.plugins.state(&key).unwrap().pid.unwrap());
        let crashed = bench.run_with(&key, "main", json!({"forks": n % 5 == 0})).await;
        assert!(matches!(crashed, RunResult::Crashed(_)), "{crashed:?}");
        bench.plugins.restart(&key).await.unwrap();
        if n == 2 {
            before = n_files();
        }
    }
    for group in groups {
        assert!(is_gone(group), "{group}");
    }
    assert_eq!(bench.plugins.shared.sample.lock().groups.len(), 1);
    assert!(bench.plugins.shared.users.lock().len() <= 1);
    bench.closer.idle().await;
    eventually("no descriptor is left", || n_files() <= before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn disabled_plugins_and_safe_mode_start_nothing() {
    let bench = Bench::new();
    let key = bench.install("demo", &acting("return {}"), json!({}));
    let enable = |is_enabled| bench.records.records.lock().get_mut(&key).unwrap().is_enabled = is_enabled;
    enable(false);
    bench.start();
    let refused = bench.plugins.run(&key, "main", Map::new(), RunCause::Button).await;
    assert_eq!(refused, Err(RunRefusal::Disabled));
    enable(true);
    bench.plugins.reload(&key).await.unwrap();
    assert_eq!(bench.returned(&key, "main").await, json!({}));
    let pid = bench.plugins.state(&key).unwrap().pid.unwrap();
    enable(false);
    bench.plugins.reload(&key).await.unwrap();
    assert_eq!(bench.plugins.state(&key).unwrap().state, PluginState::Disabled);
    assert!(is_gone(pid));

    let bench = Bench::with(|it| it.is_safe_mode = true);
    let key = bench.install("demo", &acting("return {}"), json!({}));
    bench.start();
    let refused = bench.plugins.run(&key, "main", Map::new(), RunCause::Button).await;
    assert_eq!(refused, Err(RunRefusal::SafeMode));
    assert_eq!(bench.plugins.restart(&key).await, Err(PluginError::SafeMode));
    assert_eq!(bench.plugins.state(&key).unwrap().state, PluginState::Disabled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_reloaded_while_it_starts_is_ready_when_that_is_answered() {
    let bench = Bench::new();
    let code = "import os, time\n\
                home = os.environ['HOME']\n\
                open(os.path.join(home, 'start-%d' % os.getpid()), 'w').close()\n\
                while not os.path.exists(os.path.join(home, 'go')):\n    time.sleep(0.01)\n\
                class Plugin:\n    def run(self, action, params, context):\n        return {}\n";
    let key = bench.install("demo", code, json!({}));
    bench.start();
    let files = bench.folder.path().join("data/plugin-data/demo/files");
    let n_starts = || {
        let names = fs::read_dir(&files).into_iter().flatten().map(|it| it.unwrap().file_name());
        names.filter(|it| it.to_string_lossy().starts_with("start-")).count()
    };
    eventually("the first process", || n_starts() == 1).await;
    let (plugins, reloaded_key) = (bench.plugins.clone(), key.clone());
    let reloaded = tokio::spawn(async move { plugins.reload(&reloaded_key).await });
    eventually("the second process", || n_starts() == 2).await;
    assert!(!reloaded.is_finished(), "no process is ready");
    fs::write(files.join("go"), "").unwrap();
    assert_eq!(reloaded.await.unwrap(), Ok(()));
    assert_eq!((n_starts(), bench.plugins.state(&key).unwrap().state), (2, PluginState::Ready));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_on_demand_has_a_process_only_for_runs() {
    let bench = Bench::with(|it| it.timings.idle = Duration::from_millis(100));
    let key = bench.install("demo", &acting("return {}"), json!({"lifetime": "on_demand"}));
    bench.start();
    bench.until(&key, PluginState::Idle).await;
    let first = bench.returned(&key, "other").await;
    let idle = bench.until(&key, PluginState::Idle).await;
    assert_eq!(idle.pid, None);
    assert_ne!(bench.returned(&key, "other").await, first);
}
