//! Requests that schemathesis makes out of the published schema, valid and invalid ones, against a running gateway.

mod slow {
    use std::process::Output;
    use std::time::Duration;

    use serde_json::json;
    use tokio::process::Command;
    use tokio::time::timeout;

    use crate::support::api::{Api, PASSWORD};
    use crate::support::gateway::Setup;

    /// Longest time for all requests. The program needs three minutes for those of a night, and more on a busy machine.
    const TIME_MAX: Duration = Duration::from_secs(900);
    /// Users that exist before the requests.
    const USERS: u32 = 30;
    /// Every run sends the same requests.
    const SEED: &str = "1";

    /// Operations that can take away the credentials of the requests: those on users and API keys, and those on logins.
    /// Both have a run of their own.
    const OF_USERS: &str = "^/api/accounts/(users|api-keys)/";
    const OF_LOGINS: &str = "^/api/accounts/(auth|logins)/";

    /// Operations on channels, accounts and guides: with about as many requests as all others, beside which they run.
    const OF_CONTENT: &str = "^/api/(channels|m3u|epg)/";

    /// Operations of each kind: lists, single records, and many records at once.
    const OF_GROUPS: &str = "^/api/channels/(groups|profiles)/";

    /// Operations that no run contains: the first segment of this path can be the name of any other one.
    const LEFT_OUT: &str = "^/[{]user";

    /// How much a run requests.
    #[derive(Clone, Copy)]
    enum Amount {
        Few,
        Many,
    }

    impl Amount {
        /// Requests for each operation, at most, beside one for each boundary of each field.
        fn examples_max(self) -> &'static str {
            match self {
                Self::Few => "1",
                Self::Many => "4",
            }
        }
    }

    /// The operations of a run.
    enum Operations {
        Of(&'static str),
        AllBut(String),
    }

    /// Statuses with which a request that the schema forbids may be refused: the usual ones, and bodies and addresses
    /// that are too long. 502 tells of another server.
    const SETTINGS: &str = "[checks]\nnegative_data_rejection.expected-statuses = \
        ['400', '401', '403', '404', '405', '406', '409', '413', '415', '422', '428', '429', '431']\n\
        not_a_server_error.expected-statuses = ['2xx', '3xx', '4xx', '502']\n";

    const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                          response_headers_conformance,response_schema_conformance,negative_data_rejection";

    async fn run(address: &str, token: &str, operations: Operations, amount: Amount) -> Output {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("settings.toml"), SETTINGS).unwrap();
        let mut command = Command::new("schemathesis");
        command
            .current_dir(folder.path())
            .args(["--config-file", "settings.toml", "run", &format!("{address}/api/schema.json")])
            .args(["--header", &format!("Authorization: Bearer {token}")])
            .args(["--checks", CHECKS, "--max-examples", amount.examples_max(), "--seed", SEED])
            .args(["--phases", "examples,coverage,fuzzing", "--workers", "1", "--no-color"])
            .args(["--generation-database", "none", "--no-shrink", "--continue-on-failure"])
            .args(["--request-timeout", "60"])
            // They judge how fast requests are generated, which depends on the machine.
            .args(["--suppress-health-check", "all"]);
        match operations {
            Operations::Of(paths) => command.args(["--include-path-regex", paths]),
            Operations::AllBut(paths) => command.args(["--exclude-path-regex", &paths]),
        };
        let output = command.kill_on_drop(true).output();
        let output = timeout(TIME_MAX, output).await.expect("schemathesis ends in time");
        output.expect("schemathesis is needed for this test: just tools")
    }

    /// Runs the operations against a new gateway with some records, and checks that none of them broke a promise. Returns
    /// whether the credentials are still valid.
    async fn check(operations: Operations, amount: Amount) -> bool {
        // Wrong logins are not delayed, which would only take time.
        let gateway = Setup::new().config(|it| it.auth.failure_delay_max = Duration::ZERO).start().await;
        let root = Api::first_admin(&gateway).await;
        // Records that the requests find, so that they get further than 404.
        for (path, body) in [
            ("/api/channels/groups/", json!({ "name": "News" })),
            ("/api/channels/channels/", json!({ "name": "One", "number": "1" })),
            ("/api/channels/streams/", json!({ "name": "one", "url": "http://127.0.0.1:9/one.ts" })),
            ("/api/m3u/accounts/", json!({ "name": "list", "server_url": "http://127.0.0.1:9/list.m3u" })),
        ] {
            let made = root.post(path, body).await;
            assert_eq!(made.status, 201, "{made:?}");
        }
        // Requests name small ids, and the last of these users makes them.
        let mut name = String::new();
        for n in 0..USERS {
            name = format!("user{n}");
            let body = json!({ "username": name, "password": PASSWORD, "user_level": 10 });
            let made = root.post("/api/accounts/users/", body).await;
            assert_eq!(made.status, 201, "{made:?}");
        }
        let token = root.token(&name, PASSWORD).await;
        let token = token.text("access");
        let output = run(&format!("http://{}", gateway.address), token, operations, amount).await;
        let text = String::from_utf8_lossy(&output.stdout);
        let parts = ["= ERRORS =", "= FAILURES =", "SUMMARY"];
        let summary = parts.iter().find_map(|it| text.find(it)).unwrap_or(0);
        assert!(output.status.success(), "{}", &text[summary..]);
        root.bearer(token).get("/api/accounts/users/me/").await.status == 200
    }

    /// Holds T-rest.1 and T-rest.2. `rest::matrix` sends inputs of its own to every operation.
    #[tokio::test(flavor = "multi_thread")]
    async fn every_answer_about_groups_is_described_and_what_the_schema_forbids_is_refused() {
        assert!(
            check(Operations::Of(OF_GROUPS), Amount::Few).await,
            "the requests had no credentials at their end"
        );
    }

    /// All operations, with minutes of requests.
    mod night {
        use super::{Amount, LEFT_OUT, OF_CONTENT, OF_LOGINS, OF_USERS, Operations, check};

        /// Holds T-rest.1 and T-rest.2.
        #[tokio::test(flavor = "multi_thread")]
        async fn every_answer_is_described_and_what_the_schema_forbids_is_refused() {
            let others = format!("{OF_USERS}|{OF_LOGINS}|{OF_CONTENT}|{LEFT_OUT}");
            assert!(
                check(Operations::AllBut(others), Amount::Many).await,
                "the requests had no credentials at their end"
            );
        }

        /// Holds T-rest.1 and T-rest.2 for channels, accounts and guides.
        #[tokio::test(flavor = "multi_thread")]
        async fn every_answer_about_content_is_described_and_what_the_schema_forbids_is_refused() {
            assert!(
                check(Operations::Of(OF_CONTENT), Amount::Many).await,
                "the requests had no credentials at their end"
            );
        }

        /// Holds T-rest.1 and T-rest.2 for users and their keys.
        #[tokio::test(flavor = "multi_thread")]
        async fn every_answer_about_users_is_described_and_what_the_schema_forbids_is_refused() {
            check(Operations::Of(OF_USERS), Amount::Many).await;
        }

        /// Holds T-rest.1 and T-rest.2 for logins.
        #[tokio::test(flavor = "multi_thread")]
        async fn every_answer_about_logins_is_described_and_what_the_schema_forbids_is_refused() {
            check(Operations::Of(OF_LOGINS), Amount::Many).await;
        }
    }
}
