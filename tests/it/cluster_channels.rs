//! Live channels of a cluster: gateways with node certificates, NATS, and a provider that counts.

mod slow {
    use std::net::TcpListener;
    use std::sync::Arc;

    use actors::{ChannelNode, Target, now_ms};
    use cluster::testing::NatsServers;
    use domain::cluster::certificate::{ClusterAuthority, NodeCertificate};
    use domain::cluster::token::NodeRole;
    use headwater::node::authority::NodeSecrets;
    use headwater::node::file::{NodeFile, begin_cluster};
    use headwater::node::join::{JoinRequest, admit, create_token};
    use storage::Store;
    use tempfile::TempDir;

    use crate::support::gateway::{Setup, TestGateway};
    use crate::support::signal::Picture;
    use crate::support::upstream::Provider;
    use crate::support::{tools, until_async};

    const NEWS: &str = "/live/anna/news.ts";

    /// The files of nodes, and the records that their stores share.
    struct Certificates {
        scratch: Store,
        first: NodeFile,
        folders: Vec<TempDir>,
    }

    impl Certificates {
        fn new() -> Self {
            let scratch = Store::temporary(storage::records::schema()).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let first = begin_cluster(&scratch, &folder.path().join("node.json"), now_ms()).unwrap();
            Self { scratch, first, folders: vec![folder] }
        }

        /// Admits another node.
        fn add(&mut self) {
            let token = create_token(&self.scratch, NodeRole::Full, now_ms()).unwrap();
            let secrets = NodeSecrets::new().unwrap();
            let request = JoinRequest::new(&token, &secrets);
            let answer = admit(&self.scratch, &self.first.data_keys, &request, now_ms()).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let file = NodeFile::of_answer(&secrets, &answer).unwrap();
            file.write(&folder.path().join("node.json")).unwrap();
            self.folders.push(folder);
        }

        /// Returns the records of the authority and of all nodes.
        fn records(&self) -> (ClusterAuthority, Vec<NodeCertificate>) {
            let authority = self.scratch.collection::<ClusterAuthority>().get(1).unwrap().unwrap();
            (authority, self.scratch.collection::<NodeCertificate>().all().unwrap())
        }
    }

    /// Starts gateways with the channel "News" that are the nodes of one cluster.
    async fn start<const N: usize>(
        names: [&'static str; N],
        provider: &Provider,
        nats: &NatsServers,
    ) -> (Certificates, Vec<TestGateway>) {
        let certificates = tokio::task::spawn_blocking(|| {
            let mut certificates = Certificates::new();
            (1..N).for_each(|_| certificates.add());
            certificates
        });
        let certificates = certificates.await.unwrap();
        let (authority, nodes) = certificates.records();
        let list = provider.playlist(&[("news", "News", NEWS)]);
        let mut gateways = Vec::new();
        for (name, folder) in names.into_iter().zip(&certificates.folders) {
            // Free until the gateway takes it, a moment later.
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let (authority, nodes, servers) = (authority.clone(), nodes.clone(), nats.options().servers);
            let setup = Setup::new().list(&list).folder(folder.path()).config(|config| {
                config.cluster.servers = servers;
                config.cluster.node_name = Some(name.to_owned());
                config.cluster.addresses = vec![address.to_string()];
            });
            let setup = setup.records(move |write| {
                write.put(&authority)?;
                nodes.iter().try_for_each(|it| write.put(it))
            });
            gateways.push(setup.start().await);
        }
        (certificates, gateways)
    }

    async fn part(gateway: &TestGateway) -> Option<ChannelNode> {
        let target = Target::Channel(gateway.channel("News").uuid);
        gateway.gateway.switchboard().status(target).await.unwrap().and_then(|it| it.node)
    }

    async fn until_origin_is(gateway: &TestGateway, name: &str) {
        let what = format!("{name} to be the origin");
        until_async(&what, async || part(gateway).await.is_some_and(|it| &*it.origin == name)).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn viewers_of_two_gateways_share_one_upstream_and_one_takes_over() {
        let nats = NatsServers::start(&tools::installed("bin/nats-server"), 1);
        let provider = Provider::start();
        provider.path(NEWS).plays(Picture::new("news"));
        let (_certificates, mut gateways) = start(["attic", "cellar"], &provider, &nats).await;
        let here = gateways[0].watch("News").await;
        here.sees("news").await;
        // A new cluster grants nothing for 20 s; until then, each node plays for itself.
        until_origin_is(&gateways[0], "attic").await;
        let there = gateways[1].watch("News").await;
        let third = gateways[1].watch("News").await;
        there.sees("news").await;
        third.sees("news").await;
        let expected = ChannelNode { origin: Arc::from("attic"), is_origin: false, epoch: 1 };
        assert_eq!(part(&gateways[1]).await, Some(expected));
        assert_eq!((provider.open(), provider.accepted()), (1, 1));
        there.more_bytes(500_000).await;

        // The origin vanishes with everything that it has open.
        drop(gateways.remove(0));
        let cellar = &gateways[0];
        until_origin_is(cellar, "cellar").await;
        there.more_bytes(1_000_000).await;
        third.more_bytes(1_000_000).await;
        assert!(there.is_watching() && third.is_watching());
        assert_eq!(part(cellar).await.map(|it| (it.is_origin, it.epoch)), Some((true, 2)));
        assert_eq!((provider.open(), provider.accepted()), (1, 2));
        for player in [&there, &third] {
            player.received(|it| it.ts.assert_clean());
        }
        assert_eq!(cellar.n_events("client_disconnect"), 0);
    }
}
