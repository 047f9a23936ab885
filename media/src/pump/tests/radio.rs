//! Tests of radio stations as sources of a pump.

use super::*;
use crate::testing::{StationSound, TestStation};
use crate::ts::clock::PCR_HZ;

/// Returns the programme between the first and the last clock reference.
fn programme(bytes: &[u8]) -> Duration {
    let clocks: Vec<u64> = packets(bytes).filter_map(|it| Packet::new(it).pcr()).collect();
    let [first, .., last] = clocks[..] else { return Duration::ZERO };
    Duration::from_nanos((last - first) * 1_000_000_000 / PCR_HZ)
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_radio_is_read_five_seconds_ahead() {
    for sound in StationSound::ALL {
        let mut setup = Setup::new();
        let station = TestStation { burst: Duration::from_secs(40), ..TestStation::new(sound) };
        setup.provider.set("/s", Behaviour::Station(station));
        setup.follow(1, "/s").await;
        setup.plays(1).await;
        let mut tail = setup.tail();
        let mut bytes = all_for(&mut tail, Duration::from_secs(1)).await;
        let lead = programme(&bytes);
        assert!(lead > Duration::from_secs(5) && lead < Duration::from_secs(10), "{sound:?}: {lead:?}");
        bytes.extend(all_for(&mut tail, Duration::from_secs(60)).await);
        let lead = programme(&bytes) - Duration::from_secs(61);
        assert!(lead > Duration::from_secs(4) && lead < Duration::from_secs(9), "{sound:?}: {lead:?}");
        assert!(setup.messages.try_recv().is_err(), "{sound:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_station_that_sends_blocks_is_not_silent() {
    for seconds in [1, 2, 4] {
        let mut setup = Setup::new();
        let (clump, burst) = (Duration::from_secs(seconds), Duration::from_secs(seconds));
        let station = TestStation { clump, burst, ..TestStation::new(StationSound::Aac) };
        setup.provider.set("/s", Behaviour::Station(station));
        setup.follow(1, "/s").await;
        setup.plays(1).await;
        let mut tail = setup.tail();
        let played = programme(&all_for(&mut tail, Duration::from_secs(120)).await);
        assert!(played > Duration::from_secs(115), "{seconds}: {played:?}");
        assert!(setup.messages.try_recv().is_err(), "{seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_title_of_the_source_that_plays_is_known() {
    let mut setup = Setup::new();
    let titles = |texts: &[&str]| Some((4_000, texts.iter().map(|it| (*it).to_owned()).collect()));
    let one = TestStation { titles: titles(&["one", "two"]), ..TestStation::new(StationSound::Mp3) };
    let other = TestStation { titles: titles(&["other"]), ..one.clone() };
    let ended = TestStation { titles: titles(&["some", ""]), ..one.clone() };
    setup.provider.set("/1", Behaviour::Station(one));
    setup.provider.set("/2", Behaviour::Station(other));
    setup.provider.set("/3", Behaviour::Station(ended));
    setup.provider.set("/tv", Behaviour::play("x"));
    setup.follow(1, "/1").await;
    setup.plays(1).await;
    sleep(Duration::from_secs(8)).await;
    assert_eq!(setup.pump.title().as_deref(), Some("two"));
    // A title of the source beside it is not shown before that source plays.
    setup.prepare(2, "/2").await;
    sleep(Duration::from_secs(4)).await;
    assert_eq!(setup.pump.title().as_deref(), Some("two"));
    setup.pump.follow_prepared(2);
    sleep(Duration::from_secs(4)).await;
    assert_eq!(setup.pump.title().as_deref(), Some("other"));
    setup.follow(3, "/3").await;
    sleep(Duration::from_secs(8)).await;
    assert_eq!(setup.pump.title(), None, "the station has ended its title");
    setup.follow(4, "/tv").await;
    sleep(Duration::from_secs(4)).await;
    assert_eq!(setup.pump.title(), None);
}
