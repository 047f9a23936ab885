//! Admins control everything from any node: two gateways in processes of their own, NATS, and a provider that counts.

mod slow {
    use serde_json::{Value, json};

    use crate::support::api::Api;
    use crate::support::client::Player;
    use crate::support::cluster::{Machine, Node, nats, two_nodes};
    use crate::support::cluster_content::{ClusterChannel, fill};
    use crate::support::until_async;
    use crate::support::upstream::Provider;

    async fn status(node: &Node, channel: &ClusterChannel) -> Value {
        node.api.get(&format!("/proxy/ts/status/{}", channel.uuid)).await.body
    }

    async fn until_role_is(node: &Node, channel: &ClusterChannel, role: &str) {
        let what = format!("{} to be the {role}", node.machine.name);
        until_async(&what, async || status(node, channel).await["node_role"] == role).await;
    }

    /// Returns the ids of the clients of a channel that a node serves.
    async fn clients(node: &Node, channel: &ClusterChannel) -> Vec<String> {
        let seen = status(node, channel).await;
        let all = seen["clients"].as_array().cloned().unwrap_or_default();
        let own = all.iter().filter(|it| it["node"] == node.machine.name);
        own.map(|it| it["client_id"].as_str().expect("an id").to_owned()).collect()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_admin_of_one_gateway_kicks_switches_and_stops_on_the_other() {
        let (nats, provider) = (nats(), Provider::start());
        let machine = Machine::new("attic", &nats);
        let [one, two] = fill(&machine, &provider, ["One", "Two"], &[("anna", 0)]).await;
        let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;

        // The other stream of the channel, for switches.
        let channel = attic.api.get(&format!("/api/channels/channels/{}/", two.id)).await.body;
        let other = channel["streams"][0].clone();
        let path = format!("/api/channels/channels/{}/", one.id);
        let streams = attic.api.get(&path).await.body["streams"].clone();
        let own = streams[0].clone();
        let changed = attic.api.patch(&path, json!({ "streams": [own, other] })).await;
        assert_eq!(changed.status, 200, "{changed:?}");

        let here = Player::watch(attic.address, &one.path()).await;
        here.sees("One").await;
        // A new cluster grants nothing for 20 s; until then, each node plays for itself.
        until_role_is(&attic, &one, "origin").await;
        let there = Player::watch(cellar.address, &one.path()).await;
        there.sees("One").await;
        until_role_is(&cellar, &one, "edge").await;

        // An edge passes a switch on to the origin, and a node that does not play the channel does so too.
        let next = format!("/proxy/ts/next_stream/{}", one.uuid);
        let switched = cellar.api.post(&next, Value::Null).await;
        assert_eq!((switched.status, &switched.body["stream_id"]), (200, &other), "{switched:?}");
        assert!(switched.text("message").ends_with("on attic."), "{switched:?}");
        here.sees("Two").await;
        there.sees("Two").await;
        let change = format!("/proxy/ts/change_stream/{}", one.uuid);
        let wrong = cellar.api.post(&change, json!({ "stream_id": 999 })).await;
        assert_eq!(wrong.status, 400, "{wrong:?}");

        // Each client is disconnected by the node that serves it.
        let [client] = clients(&cellar, &one).await.try_into().expect("one client");
        assert_ne!(clients(&attic, &one).await, std::slice::from_ref(&client));
        let kick = format!("/proxy/ts/stop_client/{}", one.uuid);
        let kicked = attic.api.post(&kick, json!({ "client_id": client })).await;
        assert_eq!(kicked.status, 200, "{kicked:?}");
        assert!(kicked.text("message").ends_with("on cellar."), "{kicked:?}");
        there.ended().await;
        assert!(here.is_watching());
        let again = attic.api.post(&kick, json!({ "client_id": client })).await;
        assert_eq!(again.status, 404, "{again:?}");
        let changed = cellar.api.post(&change, json!({ "stream_id": own })).await;
        assert_eq!((changed.status, &changed.body["stream_id"]), (200, &own), "{changed:?}");

        // A stop ends the channel on all nodes, and none takes over.
        let there = Player::watch(cellar.address, &one.path()).await;
        there.sees("One").await;
        until_role_is(&cellar, &one, "edge").await;
        let accepted = provider.accepted();
        let stop = format!("/proxy/ts/stop/{}", one.uuid);
        let anna = Api::stranger_at(cellar.address).token("anna", "a password of a user").await;
        let anna = Api::stranger_at(cellar.address).bearer(anna.text("access"));
        assert_eq!(anna.post(&stop, Value::Null).await.status, 403);
        let stopped = cellar.api.post(&stop, Value::Null).await;
        assert_eq!((stopped.status, &stopped.body["client_count"]), (200, &json!(2)), "{stopped:?}");
        here.ended().await;
        there.ended().await;
        until_async("the provider to be left", async || provider.open() == 0).await;
        assert_eq!(provider.accepted(), accepted);
        assert_eq!(cellar.api.post(&stop, Value::Null).await.status, 404);
        assert_eq!(cellar.api.post(&next, Value::Null).await.status, 404);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_user_who_is_disabled_on_one_gateway_stops_watching_on_the_other() {
        let (nats, provider) = (nats(), Provider::start());
        let machine = Machine::new("attic", &nats);
        let [one] = fill(&machine, &provider, ["One"], &[("anna", 0), ("bert", 1)]).await;
        let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
        let users = attic.api.get("/api/accounts/users/").await.body;
        let users = users["results"].as_array().or(users.as_array()).cloned().expect("users");
        let id = |name: &str| {
            let user = users.iter().find(|it| it["username"] == name).expect("it was made");
            format!("/api/accounts/users/{}/", user["id"])
        };
        let anna = Player::ask(cellar.address, one.asked_by("anna", "tv")).await;
        let bert = Player::ask(cellar.address, one.asked_by("bert", "tv")).await;
        anna.sees("One").await;
        bert.sees("One").await;
        let disabled = attic.api.patch(&id("anna"), json!({ "is_active": false })).await;
        assert_eq!(disabled.status, 200, "{disabled:?}");
        anna.ended().await;
        assert!(bert.is_watching());
        let removed = attic.api.delete(&id("bert")).await;
        assert_eq!(removed.status, 204, "{removed:?}");
        bert.ended().await;
    }
}
