//! The requests of webhooks: where they may lead, their bodies, headers and signatures, and tests of them.

use domain::event::StreamRef;
use domain::ids::StreamId;
use domain::stream_profile::Delivery;

use super::*;

#[tokio::test]
async fn webhooks_do_not_lead_to_the_gateway_or_to_metadata_services_by_name_or_address() {
    let server = Server::start([]).await;
    let port = server.address.port();
    let models = Fixture::new().await.stop().await;
    let urls =
        ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"].map(|it| format!("http://{it}:{port}/"));
    let links =
        ["http://169.254.169.254/latest/", "http://100.100.100.200/", "http://[fe80::1]/"].map(str::to_owned);
    let own = Fixture::on(models.clone(), IntegrationSettings::default(), [server.address].into());
    for url in urls.iter().chain(&links) {
        let id = own.add(Target::Webhook(webhook(url))).await;
        own.emit(film(url));
        own.until(id, |it| it.n_dead == 1).await;
        let log = own.until_logged(id, 1).await.remove(0);
        let reason = log.reason.unwrap();
        assert!(reason.starts_with("a webhook may not lead to"), "{url}: {reason}");
        own.change(id, |it| it.is_enabled = false).await;
    }
    let models = own.stop().await;
    // The operator can narrow it further.
    let settings =
        IntegrationSettings { nearest_network: Distance::Public, ..IntegrationSettings::default() };
    let narrow = Fixture::on(models, settings, [].into());
    for url in urls {
        let id = narrow.add(Target::Webhook(webhook(&url))).await;
        narrow.emit(film(&url));
        narrow.until(id, |it| it.n_dead == 1).await;
        let reason = narrow.until_logged(id, 1).await.remove(0).reason.unwrap();
        assert!(reason.contains("integrations.nearest_network"), "{url}: {reason}");
    }
    assert_eq!(*server.n_connections.lock(), 0);
}

#[tokio::test]
async fn templates_and_presets_make_the_body_and_a_blank_one_is_not_sent() {
    let (fixture, server) = (Fixture::new().await, Server::start([]).await);
    let template =
        r#"{% if content_name == "blank" %} {% else %}{"film": "{{ content_name|upper }}"}{% endif %}"#;
    let id = fixture
        .add_with(to(&server), move |it| it.subscriptions[0].template = Some(template.to_owned()))
        .await;
    fixture.emit(film("blank"));
    fixture.emit(film("a \"b\""));
    let requests = server.until_asked(1).await;
    assert_eq!(requests[0].body, r#"{"film": "A \"B\""}"#);
    let log = fixture.until_logged(id, 2).await;
    assert!(log[1].is_success && log[1].reason.as_ref().unwrap().contains("blank"), "{log:?}");
    assert!(log[1].answer.is_none() && log[1].request.trim().is_empty());
    let plain = "Now: {{ content_name }}";
    fixture.change(id, move |it| it.subscriptions[0].template = Some(plain.to_owned())).await;
    fixture.emit(film("text"));
    let requests = server.until_asked(2).await;
    assert_eq!(requests[1].body, "Now: text");
    assert_eq!(requests[1].header("content-type").as_deref(), Some("text/plain; charset=utf-8"));
    // A fault is never answered with another body.
    fixture.change(id, move |it| it.subscriptions[0].template = Some("{{ content_name".to_owned())).await;
    fixture.emit(film("fault"));
    fixture.until(id, |it| it.n_dead == 1).await;
    assert!(fixture.log(id)[0].reason.as_ref().unwrap().contains("template"));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn headers_and_signatures_are_sent_and_secrets_are_not_logged() {
    let echo = "key-of-the-header whsec_c2VjcmV0LXNlY3JldA== token-of-the-target".to_owned();
    let long = format!("{echo}{}", "x".repeat(100_000));
    let server = Server::start([Answer::Status(500, "Retry-After: 7200\r\n", long)]).await;
    let fixture = Fixture::new().await;
    let secret = |it: &str| Secret::new(it.to_owned());
    let target = Webhook {
        method: "PUT".to_owned(),
        headers: vec![
            ("Authorization".to_owned(), secret("Bearer key-of-the-header")),
            ("Content-Type".to_owned(), secret("application/x-own")),
        ],
        signing: Some(Signing {
            secret: secret("whsec_c2VjcmV0LXNlY3JldA=="),
            old: Some((secret("whsec_b2xkLXNlY3JldA=="), now_ms() + 60_000)),
        }),
        ..webhook(&server.url())
    };
    let id = fixture.add(Target::Webhook(target)).await;
    fixture.emit(film("one"));
    let request = server.until_asked(1).await.remove(0);
    assert!(request.head.starts_with("PUT /hooks/token-of-the-target HTTP/1.1"), "{request:?}");
    assert_eq!(request.header("authorization").as_deref(), Some("Bearer key-of-the-header"));
    assert_eq!(request.header("content-type").as_deref(), Some("application/x-own"));
    assert_eq!(request.header("webhook-signature").unwrap().matches("v1,").count(), 2);
    let log = fixture.until_logged(id, 1).await;
    let body = &log[0].answer.as_ref().unwrap().body;
    assert!(body.starts_with("… … …xxx") && body.len() <= 4 * 1024, "{body}");
    let stored =
        serde_json::to_string(&log).unwrap() + &format!("{:?}", fixture.deliveries(&Default::default()));
    for secret in ["key-of", "c2VjcmV0", "token-of"] {
        assert!(!stored.contains(secret), "{secret}: {stored}");
    }
}

#[tokio::test]
async fn a_test_sends_an_example_of_each_enabled_event_and_changes_nothing_else() {
    let (fixture, server) = (Fixture::new().await, Server::start([status(410, "")]).await);
    let id = fixture.add_with(to(&server), |it| it.is_enabled = false).await;
    let results = fixture.integrations.test(id).await.unwrap();
    let seen: Vec<_> = results.iter().map(|it| &*it.event).collect();
    assert_eq!(seen, ["vod_start", "vod_stop", "channel_error"]);
    assert_eq!(results.iter().filter(|it| !it.entry.is_success).count(), 1, "the one that got 410");
    let requests = server.requests();
    assert!(requests.iter().all(|it| it.json()["test"] == true), "{requests:?}");
    let status = fixture.status(id);
    assert_eq!((status.paused, status.n_dead, status.n_waiting), (None, 0, 0));
    let log = fixture.log(id);
    assert_eq!(
        log.iter().rev().cloned().collect::<Vec<_>>(),
        results.iter().map(|it| it.entry.clone()).collect::<Vec<_>>()
    );
    assert!(log.iter().all(DeliveryLogEntry::is_test));
    let missing = fixture.integrations.test(IntegrationId(99)).await;
    assert!(matches!(missing, Err(IntegrationError::NotFound)));
    fixture.change(id, |it| it.subscriptions.clear()).await;
    assert!(matches!(fixture.integrations.test(id).await, Err(IntegrationError::NoEvents)));
}

/// A webhook that hangs held the request of a test for 15 s times the number of its events.
#[tokio::test]
async fn a_test_sends_four_examples_at_the_same_time_and_no_more() {
    let hung = (0..17).map(|_| Answer::Hang);
    let (fixture, server) = (Fixture::new().await, Server::start(hung).await);
    let subscription = |(id, event): (u32, &&str)| Subscription {
        id,
        event: (*event).to_owned(),
        is_enabled: true,
        template: None,
    };
    let all: Vec<_> = (0..).zip(EventBody::NAMES.iter()).map(subscription).collect();
    let id = fixture.add_with(to(&server), move |it| it.subscriptions = all).await;
    let integrations = fixture.integrations.clone();
    let test = AbortOnDropHandle::new(tokio::spawn(async move { integrations.test(id).await }));
    server.until_asked(4).await;
    sleep(Duration::from_millis(200)).await;
    assert_eq!(server.requests().len(), 4);
    drop(test);
}

/// An event with the address of a stream.
fn lost() -> Event {
    let channel = ChannelRef { uuid: Uuid::from_u128(7), name: "News".to_owned(), number: None };
    let stream = StreamRef {
        id: StreamId(1),
        name: "News HD".to_owned(),
        url: SourceUrl::new("http://anna:login-at-provider@tv.example:8080/live/anna/login-at-provider/1.ts"),
        profile_used: Delivery::Proxy,
        account_name: "Provider".to_owned(),
    };
    let body = EventBody::ChannelError { channel, error_message: "stall".to_owned(), stream: Some(stream) };
    Event { at: now_ms(), body }
}

#[tokio::test]
async fn only_a_trusted_target_gets_whole_addresses_and_they_are_kept_nowhere_else() {
    // Targets repeat what they get.
    let echo = Answer::Status(400, "", "http://anna:login-at-provider@tv.example:8080/live".to_owned());
    let (fixture, trusted, other) =
        (Fixture::new().await, Server::start([echo]).await, Server::start([]).await);
    let template = r#"{"url": "{{ stream_url }}"}"#;
    let id = fixture
        .add_with(to(&trusted), move |it| {
            it.is_trusted = true;
            it.subscriptions[2].template = Some(template.to_owned());
        })
        .await;
    let id_of_other = fixture.add(to(&other)).await;
    fixture.emit(lost());
    let whole = "http://anna:login-at-provider@tv.example:8080/live/anna/login-at-provider/1.ts";
    assert_eq!(trusted.until_asked(1).await[0].json()["url"], whole);
    assert_eq!(other.until_asked(1).await[0].json()["stream_url"], "http://tv.example:8080/…");
    fixture.until(id, |it| it.n_dead == 1).await;
    let logs = [fixture.until_logged(id, 1).await, fixture.until_logged(id_of_other, 1).await];
    assert_eq!(logs[0][0].request, r#"{"url": "http://tv.example:8080/…"}"#);
    let dead = fixture.deliveries(&DeliveryFilter::default());
    assert_eq!(dead[0].payload.matches("http://tv.example:8080/…").count(), 2, "{dead:?}");
    let shown = format!("{logs:?} {dead:?} {}", serde_json::to_string(&logs).unwrap());
    assert!(!shown.contains("login-at-provider"), "{shown}");
    // A dead letter that is sent again after the trust was withdrawn has the short form.
    fixture.change(id, |it| it.is_trusted = false).await;
    fixture.replay(&DeliveryFilter::default()).await;
    assert_eq!(trusted.until_asked(2).await[1].json()["url"], "http://tv.example:8080/…");
}
