//! The library of Standard Webhooks verifies what webhooks send.

mod slow {
    use serde_json::{Value, json};

    use crate::support::api::Api;
    use crate::support::client::Request;
    use crate::support::gateway::TestGateway;
    use crate::support::tools::{installed, run_with_input};
    use crate::support::web_target::{SentRequest, WebTarget};

    /// Returns what the library says about a request: for each secret, the event or why the request is refused.
    async fn verified(request: &SentRequest, secrets: &[&str]) -> Value {
        let python = installed("bin/python");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/webhook_library/verify.py");
        let input = json!({ "headers": request.headers, "body": request.body }).to_string();
        let arguments = [&[script], secrets].concat();
        let output = run_with_input(python.to_str().unwrap(), &arguments, input.as_bytes()).await;
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_library_verifies_signatures_also_after_a_new_secret() {
        let gateway = TestGateway::with_list("#EXTM3U\n").await;
        let (admin, target) = (Api::first_admin(&gateway).await, WebTarget::start());
        let list = "/api/connect/integrations/";
        let body = json!({
            "name": "Signed", "type": "webhook", "url": target.url("/signed"), "events": ["login_failed"],
        });
        let made = admin.post(list, body).await;
        assert_eq!(made.status, 201, "{made:?}");
        let secret_of = format!("{list}{}/secret/", made.body["id"]);
        let fail_login = async || {
            let body = json!({ "username": "nobody", "password": "wrong" }).to_string();
            let login = Request::get("/api/accounts/token/").method("POST");
            admin.without_credentials().ask(login.body("application/json", body)).await;
        };
        let first = admin.post(&secret_of, json!({})).await.text("secret").to_owned();
        let other = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

        fail_login().await;
        let sent = target.received("/signed", 1).await.remove(0);
        let found = verified(&sent, &[&first, other]).await;
        assert_eq!(found, json!(["login_failed", "refused: No matching signature found"]));
        let changed = SentRequest { body: format!("{} ", sent.body), ..sent };
        assert_eq!(verified(&changed, &[&first]).await, json!(["refused: No matching signature found"]));

        // For a day, a target that knows only the old secret accepts requests, and so does one that knows only the new one.
        let second = admin.post(&secret_of, json!({})).await.text("secret").to_owned();
        assert_ne!(first, second);
        fail_login().await;
        let sent = target.received("/signed", 2).await.remove(1);
        assert_eq!(verified(&sent, &[&first, &second]).await, json!(["login_failed", "login_failed"]));
    }
}
