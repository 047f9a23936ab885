//! Tests of outputs, with a provider in memory and no sockets beyond the machine.

use domain::channel::Channel;
use domain::ids::ChannelId;
use tokio::time::sleep;

use super::*;
use crate::switchboard::OUTPUT_AGENT;
use crate::testing::{Scenario, channel, models, settings, stream};

/// Longest wait for anything.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A gateway with channel 1, whose stream is `a`.
struct Studio {
    scenario: Scenario,
    models: Models,
}

impl Studio {
    async fn new() -> Self {
        let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
        let studio = Self { scenario, models: models(&[]) };
        studio.scenario.system.send_outputs(studio.models.clone());
        studio
    }

    /// Sets the output of the channel.
    async fn send_to(&self, address: Option<(&str, UdpOutputMode)>) {
        let mut record = Channel::new(ChannelId(1), channel(1).uuid(), "News", 0);
        record.udp_output = address.map(|(address, mode)| {
            Box::new(UdpOutput { address: address.parse().unwrap(), interface: None, ttl: 1, mode })
        });
        self.models.store.write(move |write| write.put(&record)).await.unwrap();
    }

    fn state(&self) -> UdpOutputState {
        self.scenario.system.udp_outputs().state(channel(1).uuid())
    }

    fn n_clients(&self) -> usize {
        self.scenario.system.counts().clients
    }

    async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + WAIT_MAX;
        while !condition(self) {
            assert!(Instant::now() < deadline, "timeout waiting for {what}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A receiver of which nothing is read.
fn receiver() -> (std::net::UdpSocket, String) {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("udp://{}", socket.local_addr().unwrap());
    (socket, address)
}

#[tokio::test(start_paused = true)]
async fn a_channel_with_an_output_plays_without_viewers_until_the_output_is_removed() {
    let (studio, (_socket, address)) = (Studio::new().await, receiver());
    studio.send_to(Some((&address, UdpOutputMode::Always))).await;
    studio.until("the output", |it| it.n_clients() == 1).await;
    studio.until("datagrams", |it| it.state() == UdpOutputState::Sending).await;
    let status = studio.scenario.system.switchboard().status(channel(1)).await.unwrap().unwrap();
    let shown = &status.clients[0];
    assert_eq!((shown.agent.as_str(), shown.user_id), (OUTPUT_AGENT, None));
    assert_eq!(shown.datagrams.map(|it| it.to_string()), Some(address));
    // Another receiver takes its place.
    let (_other, address) = receiver();
    studio.send_to(Some((&address, UdpOutputMode::Always))).await;
    sleep(Duration::from_secs(5)).await;
    studio.until("the other output", |it| it.n_clients() == 1).await;
    studio.send_to(None).await;
    studio.until("the end", |it| it.n_clients() == 0).await;
    studio.until("no output", |it| it.state() == UdpOutputState::Idle).await;
    studio.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn an_output_of_a_watched_channel_comes_and_goes_with_its_viewers() {
    let (studio, (_socket, address)) = (Studio::new().await, receiver());
    studio.send_to(Some((&address, UdpOutputMode::Watched))).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!((studio.n_clients(), studio.state()), (0, UdpOutputState::Idle));
    let mut viewer = studio.scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    studio.until("the output", |it| it.n_clients() == 2).await;
    drop(viewer);
    studio.until("the end of the output", |it| it.n_clients() == 0).await;
    studio.scenario.is_quiet().await;
    assert_eq!(studio.n_clients(), 0, "the output does not start the channel again");
}

#[tokio::test(start_paused = true)]
async fn an_output_that_cannot_be_opened_takes_no_connection() {
    let studio = Studio::new().await;
    let mut record = Channel::new(ChannelId(1), channel(1).uuid(), "News", 0);
    record.udp_output = Some(Box::new(UdpOutput {
        address: "udp://239.255.77.9:5000".parse().unwrap(),
        interface: Some("no-such".to_owned()),
        ttl: 1,
        mode: UdpOutputMode::Always,
    }));
    studio.models.store.write(move |write| write.put(&record)).await.unwrap();
    sleep(Duration::from_secs(30)).await;
    assert_eq!((studio.n_clients(), studio.scenario.provider.n_accepted()), (0, 0));
    let UdpOutputState::Failing(reason) = studio.state() else { panic!("{:?}", studio.state()) };
    assert!(reason.contains("interface no-such does not exist"), "{reason}");
}
