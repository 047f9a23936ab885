//! Integrations: made with their events and templates, tested, and what failed sent again.

use domain::user::UserLevel;
use serde_json::{Value, json};
use storage::plugin_files::testing::{archive, part};

use crate::support::api::Api;
use crate::support::gateway::TestGateway;
use crate::support::upstream::Provider;
use crate::support::web::{PASSWORD, Web, person};
use crate::support::web_target::WebTarget;
use crate::support::{eventually, until_async};
use crate::web_audit::slow::{axe, check};
use crate::web_pages::page::Page;

const LIST: &str = "/api/connect/integrations/";
const ROWS: &str =
    "return [...document.querySelectorAll('table tbody tr')].map((it) => it.innerText.replace(/\\s+/g, ' '))";

/// A gateway with a target for its webhooks.
struct Office {
    _provider: Provider,
    gateway: TestGateway,
    target: WebTarget,
    admin: Api,
    page: Page,
}

impl Office {
    async fn open(path: &str) -> Office {
        let provider = Provider::start();
        let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/news.ts")])).await;
        let root = person(&gateway, "root", UserLevel::Admin).await;
        let admin = Api::stranger_at(gateway.api).login(&root.name, PASSWORD).await;
        let page = Page::new(Web::signed_in(&gateway, &root, path).await);
        Office { _provider: provider, gateway, target: WebTarget::start(), admin, page }
    }

    /// Creates a webhook for failed logins, and returns its id.
    async fn webhook(&self, name: &str, path: &str) -> u64 {
        let url = self.target.url(path);
        let body = json!({ "name": name, "type": "webhook", "url": url, "events": ["login_failed"] });
        let made = self.admin.post(LIST, body).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.body["id"].as_u64().unwrap()
    }

    /// Causes an event: a new user types a wrong password.
    async fn fails_a_login(&self, name: &str) {
        person(&self.gateway, name, UserLevel::Streamer).await;
        assert_eq!(self.admin.token(name, "wrong").await.status, 401);
    }

    async fn until_dead(&self, id: u64, n: u64) {
        until_async("dead letters", async || {
            self.admin.get(&format!("{LIST}{id}/")).await.body["dead"] == json!(n)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_makes_a_webhook_writes_a_template_tests_it_and_signs_its_requests() {
    let office = Office::open("/integrations").await;
    let (page, target) = (&office.page, &office.target);
    page.shows("No integrations").await;
    page.presses("New integration").await;
    page.fills("Name", "Chat <b>").await;
    page.chooses("Service", "ntfy").await;
    page.fills("Address", "elsewhere").await;
    page.presses("Save").await;
    page.shows("Enter an address that begins with").await;
    page.fills("Address", &target.url("/hook-7f3a")).await;
    page.fills("Topic", "tv").await;
    page.clicks("summary", "More settings").await;
    page.presses("Add a header").await;
    page.fills("Name of the header", "X-Key").await;
    page.fills("Value of X-Key", "h1dden").await;
    page.presses("Save").await;
    page.shows("The integration was created. Choose its events.").await;

    page.clicks("label", "A sign-in fails").await;
    page.presses("Save").await;
    page.shows("The events were saved.").await;
    page.presses("Template: A sign-in fails").await;
    page.presses("Begin with the text of the service").await;
    page.shows("\"topic\": \"tv\"").await;
    page.fills("Template", "{\"text\":\n  {{ nobody }}}").await;
    page.shows("Line 2, column").await;
    page.presses("Go there").await;
    let selected = "const it = document.querySelector('dialog textarea'); return it.selectionStart >= 9";
    page.until_is("the place of the fault", selected, json!(true)).await;
    page.clicks("dialog[open] button", "Save").await;
    page.until(
        "a refused template",
        "return document.querySelector('dialog [aria-invalid=true]') !== null",
        |it| *it == json!(true),
    )
    .await;
    page.fills("Template", "{\"text\": \"Failed: {{ user }}\"}").await;
    page.shows("\"text\": \"Failed:").await;
    page.clicks("dialog[open] button", "Save").await;
    page.shows("own template").await;

    page.presses("Send a test").await;
    page.shows("All events were delivered.").await;
    let sent = target.received("/hook-7f3a", 1).await.remove(0);
    assert!(sent.json()["text"].as_str().is_some_and(|it| it.starts_with("Failed: ")), "{sent:?}");
    assert_eq!((sent.header("x-key"), sent.header("webhook-signature")), ("h1dden", ""));
    page.clicks("dialog[open] button", "Close").await;

    page.clicks("[role=tab]", "Settings").await;
    page.presses("Make a secret").await;
    page.shows("Copy it to the target now. It is not shown again.").await;
    let secret = "return document.querySelector('dialog[open] input[readonly]').value";
    page.until("the secret", secret, |it: &Value| it.as_str().is_some_and(|it| it.starts_with("whsec_")))
        .await;
    page.clicks("dialog[open] button", "Close").await;
    page.shows("Requests are signed with a secret").await;
    // Neither the address nor the header is shown again.
    let values = "return [...document.querySelectorAll('input, textarea')].map((it) => it.value).join(' ')";
    let shown = page.browser().script(values).await;
    assert!(
        !shown.as_str().unwrap().contains("h1dden") && !shown.as_str().unwrap().contains("7f3a"),
        "{shown}"
    );
    // A change of something else keeps both.
    page.fills("Name", "Chat").await;
    page.presses("Save").await;
    page.shows("Saved.").await;
    office.fails_a_login("anna").await;
    let sent = target.received("/hook-7f3a", 2).await.remove(1);
    assert_eq!((sent.header("x-key"), sent.body.as_str()), ("h1dden", "{\"text\": \"Failed: anna\"}"));
    assert!(sent.header("webhook-signature").starts_with("v1,"), "{sent:?}");
    page.presses("Replace the secret").await;
    page.clicks("dialog[open] button", "Replace the secret").await;
    page.shows("Copy it to the target now. It is not shown again.").await;
    page.clicks("dialog[open] button", "Close").await;
    page.shows("They are signed with the earlier secret too, until").await;

    page.clicks("[role=tab]", "Log").await;
    let is_both = |it: &Value| it.as_array().is_some_and(|it| it.len() == 2);
    page.until("both attempts", ROWS, is_both).await;
    page.chooses("Result", "failed").await;
    page.shows("No attempt matches").await;
    page.presses("Clear the filters").await;
    page.until("both attempts", ROWS, is_both).await;
    page.presses("Details: A sign-in fails").await;
    page.shows("\"text\": \"Failed: anna\"").await;
    page.clicks("dialog[open] button", "Close").await;
    page.presses("All integrations").await;
    page.lists("Integrations", 1, &["Chat"]).await;
    // The refused address and template are the only failures.
    assert!(page.browser().console().await.iter().all(|it| it.contains("400")));
}

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_failed_for_good_is_sent_again_or_deleted_and_a_paused_integration_resumes() {
        let office = Office::open("/integrations").await;
        let (page, target) = (&office.page, &office.target);
        let chat = office.webhook("Chat", "/chat").await;
        target.answers("/chat", [400, 400, 400]);
        for name in ["anna", "ben", "cora"] {
            office.fails_a_login(name).await;
        }
        office.until_dead(chat, 3).await;
        // The list follows without being loaded again.
        let counts = "return [...document.querySelectorAll('tbody tr td:last-child')].map((it) => it.innerText.trim())";
        page.until_is("failed deliveries", counts, json!(["3"])).await;

        page.clicks("[role=tab]", "Queue").await;
        page.until("three rows", ROWS, |it: &Value| it.as_array().is_some_and(|it| it.len() == 3)).await;
        page.chooses("State", "waiting").await;
        page.shows("No delivery matches").await;
        page.chooses("State", "failed").await;
        let of_anna =
            "return [...document.querySelectorAll('tr')].find((it) => it.innerText.includes('anna'))
        ?.querySelector('button[aria-label^=\"Send again\"]')?.getAttribute('aria-label') ?? null";
        let label = page.until("the button", of_anna, |it: &Value| it.is_string()).await;
        page.presses(label.as_str().unwrap()).await;
        page.shows("1 delivery is sent again.").await;
        eventually("the event again", || target.requests("/chat").len() == 4).await;
        assert_eq!(target.requests("/chat")[3].json()["user"], "anna");
        page.until("two rows", ROWS, |it: &Value| it.as_array().is_some_and(|it| it.len() == 2)).await;
        page.presses("Delete all failed ones").await;
        page.clicks("dialog[open] button", "Delete").await;
        page.shows("Deleted 2 deliveries.").await;
        page.shows("No delivery matches").await;

        target.answers("/chat", [410]);
        office.fails_a_login("dora").await;
        page.web.opens(&format!("/integrations/{chat}")).await;
        page.shows("The integration is paused").await;
        page.web.opens("/health").await;
        page.shows("Integration \"Chat\" is paused").await;
        page.presses("Go to the remedy").await;
        page.lists("Integrations", 1, &["Chat"]).await;
        page.web.opens(&format!("/integrations/{chat}?tab=queue")).await;
        page.presses("Resume").await;
        page.shows("The integration is resumed.").await;
        page.presses("Send all failed ones again").await;
        page.clicks("dialog[open] button", "Send again").await;
        page.shows("1 delivery is sent again.").await;
        page.shows("Nothing waits").await;
        assert_eq!(target.received("/chat", 6).await[5].json()["user"], "dora");

        let axe = axe();
        for tab in ["settings", "events", "queue", "log"] {
            check(&page.web, &axe, &format!("/integrations/{chat}?tab={tab}")).await;
        }
        page.presses("Delete").await;
        page.clicks("dialog[open] button", "Delete").await;
        page.shows("No integrations").await;
        page.web.opens(&format!("/integrations/{chat}")).await;
        page.shows("There is no such integration.").await;
        assert_eq!(office.gateway.models().integrations.load().iter().count(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_admin_chooses_the_action_of_a_plugin_that_an_integration_runs() {
        let office = Office::open("/plugins?show=install").await;
        let page = &office.page;
        let manifest = json!({
            "name": "Cleaner <b>", "version": "1", "description": "", "permissions": {},
            "actions": [{"id": "stay", "label": "Stay"}, {"id": "go", "label": "Go"}],
        });
        let manifest = part("cleaner/plugin.json", manifest.to_string().as_bytes());
        page.chooses_archive(&archive(&[manifest, part("cleaner/plugin.py", b"")])).await;
        page.presses("Install").await;
        page.shows("Before you enable it").await;

        page.web.opens("/integrations/new").await;
        page.fills("Name", "Evening").await;
        page.chooses("Type", "Plugin: runs an action of a plugin").await;
        page.chooses("Plugin", "Cleaner <b> (cleaner)").await;
        page.shows("The plugin is disabled. Enable it to run its actions.").await;
        page.chooses("Action", "Go").await;
        page.presses("Save").await;
        page.shows("The integration was created. Choose its events.").await;
        let made = office.admin.get(&format!("{LIST}1/")).await;
        let target = ["type", "plugin", "action"].map(|it| made.text(it));
        assert_eq!(target, ["plugin", "cleaner", "go"], "{made:?}");
        page.clicks("[role=tab]", "Settings").await;
        let chosen =
            "return [...document.querySelectorAll('main select')].map((it) => it.selectedOptions[0]?.text)";
        page.until_is("the chosen action", chosen, json!(["Cleaner <b> (cleaner)", "Go"])).await;
        check(&page.web, &axe(), "/integrations/1").await;
    }
}
