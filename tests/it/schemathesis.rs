//! Requests that schemathesis makes out of the published schema, valid and invalid ones, against a running gateway.

mod slow {
    use std::process::Output;
    use std::time::Duration;

    use serde_json::json;
    use tokio::process::Command;
    use tokio::time::timeout;

    use crate::support::api::Api;
    use crate::support::gateway::Setup;

    /// Longest time for all requests. The program needs three minutes, and more on a busy machine.
    const TIME_MAX: Duration = Duration::from_secs(900);
    /// Requests for each operation, at most, beside one for each boundary of each field.
    const EXAMPLES_MAX: &str = "4";
    /// Every run sends the same requests.
    const SEED: &str = "1";

    /// Operations whose success takes away the credentials of the other requests, or that never end.
    const LEFT_OUT: &str = "/api/accounts/(auth|api-keys|logins|users)|/api/backups/.*restore|/proxy/ts/stream/|/live/|^/[{]user";

    /// Statuses with which a request that the schema forbids may be refused: the usual ones, and bodies and addresses
    /// that are too long.
    const SETTINGS: &str = "[checks]\nnegative_data_rejection.expected-statuses = \
        ['400', '401', '403', '404', '405', '406', '409', '413', '415', '422', '428', '429', '431']\n";

    const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                          response_headers_conformance,response_schema_conformance,negative_data_rejection";

    async fn run(address: &str, token: &str) -> Output {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("settings.toml"), SETTINGS).unwrap();
        let mut command = Command::new("schemathesis");
        command
            .current_dir(folder.path())
            .args(["--config-file", "settings.toml", "run", &format!("{address}/api/schema.json")])
            .args(["--header", &format!("Authorization: Bearer {token}")])
            .args(["--checks", CHECKS, "--max-examples", EXAMPLES_MAX, "--seed", SEED])
            .args(["--phases", "examples,coverage,fuzzing", "--workers", "2", "--no-color"])
            .args(["--generation-database", "none", "--no-shrink", "--continue-on-failure"])
            .args(["--request-timeout", "60", "--exclude-path-regex", LEFT_OUT]);
        let output = command.kill_on_drop(true).output();
        let output = timeout(TIME_MAX, output).await.expect("schemathesis ends in time");
        output.expect("schemathesis is needed for this test: just tools")
    }

    /// Holds T-rest.1 and T-rest.2.
    #[tokio::test(flavor = "multi_thread")]
    async fn every_answer_is_described_and_what_the_schema_forbids_is_refused() {
        let gateway = Setup::new().start().await;
        let admin = Api::first_admin(&gateway).await;
        // Records that the requests find, so that they get further than 404.
        for (path, body) in [
            ("/api/channels/groups/", json!({ "name": "News" })),
            ("/api/channels/channels/", json!({ "name": "One", "number": "1" })),
            ("/api/channels/streams/", json!({ "name": "one", "url": "http://127.0.0.1:9/one.ts" })),
            ("/api/m3u/accounts/", json!({ "name": "list", "server_url": "http://127.0.0.1:9/list.m3u" })),
        ] {
            let made = admin.post(path, body).await;
            assert_eq!(made.status, 201, "{made:?}");
        }
        let token = admin.token(crate::support::api::ADMIN, crate::support::api::PASSWORD).await;
        let output = run(&format!("http://{}", gateway.address), token.text("access")).await;
        let text = String::from_utf8_lossy(&output.stdout);
        let summary = text.find("= FAILURES =").or_else(|| text.find("SUMMARY")).unwrap_or(0);
        assert!(output.status.success(), "{}", &text[summary..]);
    }
}
