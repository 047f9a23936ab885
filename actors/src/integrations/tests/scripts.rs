//! Scripts as targets.

use super::*;

/// A folder of scripts.
struct Scripts(TempDir);

impl Scripts {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn settings(&self) -> IntegrationSettings {
        IntegrationSettings { script_dirs: vec![self.0.path().to_owned()], ..IntegrationSettings::default() }
    }

    fn add(&self, name: &str, text: &str) -> Target {
        let path = self.0.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Target::Script(Script { path: path.display().to_string(), working_directory: None, timeout_s: 600 })
    }
}

#[tokio::test]
async fn a_script_gets_the_event_in_variables_and_on_its_input() {
    let scripts = Scripts::new();
    let fixture = Fixture::with(scripts.settings()).await;
    let text =
        "echo \"$SERVICE_EVENT_TYPE $DISPATCHARR_CONTENT_NAME $SERVICE_SUMMARY\"; pwd; cat >&2; env | wc -l";
    let id = fixture.add(scripts.add("good.sh", text)).await;
    let Target::Script(script) = scripts.add("good.sh", text) else { unreachable!() };
    assert_eq!(fixture.integrations.check_script(&script), Ok(()));
    fixture.emit(film("$(rm -rf /); a b"));
    let log = fixture.until_logged(id, 1).await.remove(0);
    let output = log.output.unwrap();
    assert_eq!((log.is_success, output.exit_code), (true, Some(0)), "{output:?}");
    let folder = fs::canonicalize(scripts.0.path()).unwrap();
    let expected = format!(
        "vod_start $(rm -rf /); a b A viewer at 192.0.2.1 watches \"$(rm -rf /); a b\".\n{}\n",
        folder.display()
    );
    assert!(output.stdout.starts_with(&expected), "{}", output.stdout);
    let payload: Value = serde_json::from_str(&output.stderr).unwrap();
    assert_eq!(payload["content_name"], "$(rm -rf /); a b");
}

#[tokio::test]
async fn a_script_that_wants_to_runs_again_and_other_failures_are_final() {
    let scripts = Scripts::new();
    let fixture = Fixture::with(scripts.settings()).await;
    let later = fixture.add(scripts.add("later.sh", "exit 75")).await;
    let failing = fixture.add(scripts.add("failing.sh", "echo why >&2; exit 3")).await;
    let slow = scripts.add("slow.sh", "sleep 1000");
    let Target::Script(slow) = slow else { unreachable!() };
    let slow = fixture.add(Target::Script(Script { timeout_s: 1, ..slow })).await;
    let open = fixture.add(scripts.add("open.sh", "exit 0")).await;
    // Others can write it since it was saved.
    fs::set_permissions(scripts.0.path().join("open.sh"), fs::Permissions::from_mode(0o777)).unwrap();
    fixture.emit(film("one"));
    let status = fixture.until(later, |it| it.failing_since.is_some()).await;
    assert_eq!((status.n_waiting, status.n_dead), (1, 0));
    for (id, reason) in [
        (failing, "exited with 3"),
        (slow, "more than 1 s"),
        (open, "can be written by its group or by others"),
    ] {
        fixture.until(id, |it| it.n_dead == 1 && it.n_waiting == 0).await;
        let log = fixture.log(id).remove(0);
        assert!(log.reason.as_ref().unwrap().contains(reason), "{log:?}");
    }
    assert_eq!(fixture.log(failing)[0].output.as_ref().unwrap().stderr, "why\n");
}
