//! What goes in and out in segments and datagrams: the output of a channel, and the figures of sources.

use std::time::Duration;

use serde_json::json;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::support::WAIT_MAX;
use crate::support::gateway::TestGateway;
use crate::support::signal::{FRAME, Picture, Programme};
use crate::support::upstream::{MockResponse, Provider};
use crate::web_pages::page::Page;

/// Number of segments of one second in the playlist.
const N_SEGMENTS: u32 = 60;
/// The one that the provider does not have.
const MISSING: u32 = 2;

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_channel_is_sent_as_datagrams_from_its_editor_and_errors_are_at_their_fields() {
        let provider = Provider::start();
        provider.path("/news.ts").plays(Picture::new("news"));
        let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/news.ts")])).await;
        let receiver = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = format!("rtp://{}", receiver.local_addr().unwrap());
        let (id, uuid) = (gateway.channel("News").id, gateway.channel("News").uuid);
        let editor = format!("/channels/{id}");
        let page = Page::open_as_admin(&gateway, &editor).await;
        let is_wrong =
            |field: &str| format!("return document.querySelector('[name=udp_{field}]')?.ariaInvalid ?? null");

        page.chooses("Send to set-top boxes", "always, which takes a connection").await;
        page.fills("Receiver", "udp://tv.example:5000").await;
        page.presses("Save").await;
        page.shows("The host must be an IP address").await;
        page.until_is("a wrong receiver", &is_wrong("address"), json!("true")).await;
        page.until_is("an interface without a problem", &is_wrong("interface"), json!(null)).await;
        page.fills("Receiver", &address).await;
        page.fills("Network interface", "a b").await;
        page.presses("Save").await;
        page.until_is("a wrong interface", &is_wrong("interface"), json!("true")).await;
        assert_eq!(provider.accepted(), 0, "nothing is sent yet");
        page.fills("Network interface", "no-such").await;
        page.presses("Save").await;
        page.shows("the network interface no-such does not exist").await;
        assert_eq!(provider.accepted(), 0, "no connection for an output that cannot be opened");
        page.fills("Network interface", "127.0.0.1").await;
        page.presses("Save").await;

        let mut datagram = [0; 2048];
        let length = timeout(WAIT_MAX, receiver.recv(&mut datagram)).await.expect("a datagram").unwrap();
        // The head of RTP with the payload type of a transport stream, and whole packets.
        assert_eq!((datagram[0], datagram[1] & 0x7f, datagram[12], (length - 12) % 188), (0x80, 33, 0x47, 0));
        page.shows("sent now").await;
        page.web.opens(&format!("/now/{uuid}")).await;
        page.shows("RTP output").await;

        page.web.opens(&editor).await;
        let shown = "return document.querySelector('[name=udp_address]')?.value ?? ''";
        page.until_is("the receiver", shown, json!(address)).await;
        page.chooses("Send to set-top boxes", "not sent").await;
        page.presses("Save").await;
        page.shows("Saved.").await;
        gateway.until_idle().await;
        // The browser reports the two refusals.
        let console = page.browser().console().await;
        assert!(console.len() == 2 && console.iter().all(|it| it.contains("400")), "{console:#?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn now_shows_the_segments_that_a_source_had_and_those_that_were_missing() {
        let provider = Provider::start();
        let mut programme = Programme::from(Picture::new("news")).tune_in(Duration::ZERO);
        let mut list = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n".to_owned();
        for number in 0..N_SEGMENTS {
            let mut segment = Vec::new();
            programme.take(Duration::from_secs(u64::from(number) + 1) - FRAME, &mut segment);
            if number != MISSING {
                provider
                    .path(&format!("/{number}.ts"))
                    .answers(MockResponse::text("video/mp2t", segment).kept());
            }
            list.push_str(&format!("#EXTINF:1,\n{number}.ts\n"));
        }
        list.push_str("#EXT-X-ENDLIST\n");
        provider.path("/list.m3u8").answers(MockResponse::text("application/x-mpegurl", list).kept());
        let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/list.m3u8")])).await;
        let player = gateway.watch("News").await;
        player.sees("news").await;
        let page = Page::open_as_admin(&gateway, &format!("/now/{}", gateway.channel("News").uuid)).await;
        page.shows("skipped").await;
        page.shows("Skipped segments were not available at the provider").await;
        let metrics = gateway.metrics().await;
        assert!(metrics["headwater_segments_read_total"] >= 2.0, "{metrics:?}");
        assert!(metrics["headwater_segments_skipped_total"] >= 1.0, "{metrics:?}");
        assert_eq!(metrics["headwater_datagrams_lost_total"], 0.0);
        player.leave().await;
        gateway.until_idle().await;
        let after = gateway.metrics().await;
        assert!(after["headwater_segments_read_total"] >= metrics["headwater_segments_read_total"]);
        page.web.is_clean().await;
    }
}
