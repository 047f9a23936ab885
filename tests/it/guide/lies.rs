//! Servers of guides that lie: nothing of it replaces a good guide.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actors::{GuideError, GuideOptions};
use domain::guide::state::GuideStatus;

use super::fixture::{DAY, GuideFixture, PASSWORD, START, guide};
use crate::MEMORY;
use crate::import::fixture::{After, gzip};

/// A gibibyte of `<channel id="a"/>` and blanks, packed by xz twice, with dictionaries of a mebibyte.
const XZ_BOMB: &str = "fd377a585a0000016922de360200210110000000a8708e86e262b301ed5d007e8dcb4582e683388efb0c200d725ae17e30a6\
    96e8966ffd1cac2692546b0a52ea301fcb0ed4c085f9c6f5bd2735a053a502a1a45e6ceb2c06fd5cc025c4e94f513da565a9\
    0ec6368a0c14386d37556bf5b9e404cc8612d23f215a0c38db687f3ce95d1a568fb905144a9428e6e7379273d1f766cfe7e9\
    c94bb522e7fcde6e7b9df0f30fc7e73d08cc24e19cbc844220e0b80daf09c4e8e644955266c164a981883ba181c28dad18ca\
    c6f2c27ab7351e5464646ed75a468638e3fafcf78d938f6c7f6dfc60254571b8e7419e7345730cd1a76677a201cd250e86ff\
    1c3e15b6eb92e40bf201517ad2d071302927e03adc64a9b898f2078d294eefb95e028f67cfe11340d3d0dcf8b422f0a5106d\
    faa1e0757fc7e7ed3a631f71bbb9cfaad15e68f0a0f23c20dbc291bbb25d67cb78fc5e7cb23f8e7535e1b54ad7308df70135\
    4671ca63cb09735daf6fe3e84992357194ce2c7e13756c5e79611dbf35b86631f5d73681947303fca9dde75e93bccd1eeef3\
    9787ce7f84234ecf5a78547d04080e7995cdcd1c5777e0d7c136babfcb16366fb93377c4bec071d27048c67b1746dc04c76f\
    18d47d58fd278c2ba806540dc24c248850ad1b88a6ef318f1c47bbb38e73ab7f4c226f7345abff3fc7344c5fdda35395c8d4\
    27bf365d31fc74d2c856d572e2cbc4b5adbb584727cb2200000000005ceec6b900018504b4c5090059c11eac3e300d8b0200\
    00000001595a";

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map(|it| u8::try_from(it.to_digit(16).unwrap()).unwrap()).collect();
    digits.chunks(2).map(|it| it[0] << 4 | it[1]).collect()
}

/// Returns a zip archive with these files, not compressed.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, content) in files {
        let n_bytes = u32::try_from(content.len()).unwrap().to_le_bytes();
        archive.extend(b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0");
        archive.extend([n_bytes, n_bytes].concat());
        archive.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        archive.extend([0, 0]);
        archive.extend(name.as_bytes());
        archive.extend(*content);
    }
    archive
}

fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let text = format!("\u{feff}{}", text.replace("UTF-8", "UTF-16"));
    text.encode_utf16().flat_map(to_bytes).collect()
}

/// Holds T-epg.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guide_is_read_in_every_packing_and_encoding_whatever_its_server_says() {
    let text = guide(2, 3, START / 1000).replace("Show", "Éire &amp; Café &eacute;t&eacute;");
    let fixture = GuideFixture::new().await;
    fixture.server.body(&text);
    fixture.refresh(START).await.unwrap();
    let expected = fixture.programmes().await;
    assert_eq!(expected.len(), 6);
    assert!(expected[0].contains("Éire"), "{expected:?}");
    let latin: Vec<u8> =
        text.replace("UTF-8", "ISO-8859-1").chars().map(|it| u8::try_from(u32::from(it)).unwrap()).collect();
    for (what, bytes) in [
        ("with a BOM", [b"\xef\xbb\xbf", text.as_bytes()].concat()),
        ("UTF-16 LE", utf16(&text, u16::to_le_bytes)),
        ("UTF-16 BE", utf16(&text, u16::to_be_bytes)),
        ("ISO-8859-1", latin),
        ("a wrong declaration", text.replace("UTF-8", "ISO-8859-15").into_bytes()),
        ("gzip", gzip(text.as_bytes())),
        ("gzip twice", gzip(&gzip(text.as_bytes()))),
        ("zip with two files", zip(&[("guide.xml", text.as_bytes()), ("readme.txt", b"hello")])),
        (
            "blank lines first",
            format!("\r\n\n{}", text.replace("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", "")).into(),
        ),
        ("a comment behind", format!("{text}<!-- made by a proxy -->").into_bytes()),
    ] {
        fixture.server.body(&bytes);
        let done = fixture.force(START).await;
        assert!(done.is_ok(), "{what}: {done:?}");
        if what != "a wrong declaration" {
            assert_eq!(fixture.programmes().await, expected, "{what}");
        }
        assert_eq!(fixture.state().n_programmes, 6, "{what}");
    }
}

/// Holds T-epg.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_complete_guide_replaces_a_good_one() {
    let fixture = GuideFixture::new().await;
    let text = guide(3, 20, START / 1000);
    fixture.server.body(&text);
    fixture.refresh(START).await.unwrap();
    let (good, expected) = (fixture.state(), fixture.programmes().await);
    let answer = |head: &str, body: &[u8]| {
        let mut bytes = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").into_bytes();
        bytes.extend_from_slice(body);
        bytes
    };
    let bomb = {
        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        bomb.write_all(text.trim_end().strip_suffix("</tv>").unwrap().as_bytes()).unwrap();
        let blank = vec![b' '; 1 << 20];
        (0..80).for_each(|_| bomb.write_all(&blank).unwrap());
        bomb.finish().unwrap()
    };
    let half = &text.as_bytes()[..text.len() / 2];
    let packed = gzip(text.as_bytes());
    let web_page = "<!DOCTYPE html><html><body>Your subscription has expired</body></html>";
    let rss = "<?xml version=\"1.0\"?><rss><channel><title>News</title></channel></rss>";
    let laughs =
        "<?xml version=\"1.0\"?><!DOCTYPE tv [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;\">]><tv></tv>";
    for (what, head, body) in [
        ("nothing", "200 OK\r\nContent-Length: 0", &b""[..]),
        ("a web page", "200 OK\r\nContent-Type: text/xml", web_page.as_bytes()),
        ("JSON", "200 OK", b"{\"user_info\":{\"auth\":0}}"),
        ("a playlist", "200 OK", b"#EXTM3U\n#EXTINF:-1,a\nhttp://h/a\n"),
        ("another XML", "200 OK", rss.as_bytes()),
        ("no channels", "200 OK", b"<?xml version=\"1.0\"?><tv></tv>"),
        ("many entities", "200 OK", laughs.as_bytes()),
        ("half of it", "200 OK", half),
        ("half of what it announced", &format!("200 OK\r\nContent-Length: {}", text.len()), half),
        ("half of an archive", "200 OK", &packed[..packed.len() / 2]),
        ("a file that unpacks to a large one", "200 OK", &bomb),
        ("an xz file that unpacks to a large one", "200 OK", &bytes_of(XZ_BOMB)),
        ("not found", "404 Not Found", text.as_bytes()),
        ("an internal error", "500 Internal Server Error", text.as_bytes()),
        ("a redirect to itself", "302 Found\r\nLocation: /get.php", b""),
        ("another encoding", "200 OK\r\nContent-Encoding: br", text.as_bytes()),
        ("no HTTP", "999", b""),
    ] {
        fixture.server.raw(answer(head, body), After::Close);
        let refused = fixture.refresh(START + DAY / 24).await.expect_err(what);
        let state = fixture.state();
        assert_eq!(
            (state.status, state.message.as_str()),
            (GuideStatus::Error, &*refused.sentence()),
            "{what}"
        );
        assert!(!state.message.contains(PASSWORD) && !format!("{refused:?}").contains(PASSWORD), "{what}");
        assert_eq!((state.generation, state.good_at), (good.generation, good.good_at), "{what}");
        assert_eq!(fixture.programmes().await, expected, "{what}");
    }
    fixture.server.body(&text);
    assert!(fixture.refresh(START + DAY / 12).await.unwrap().is_unchanged);
    assert_eq!(fixture.state().status, GuideStatus::Success);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncated_or_much_smaller_guide_waits_for_a_confirmation() {
    let fixture = GuideFixture::new().await;
    let now = START / 1000;
    let text = guide(10, 40, now);
    fixture.server.body(&text);
    fixture.refresh(START).await.unwrap();
    let all = fixture.programmes().await;
    fixture.server.body(guide(4, 200, now));
    let fewer = fixture.refresh(START).await;
    assert!(matches!(fewer, Err(GuideError::FewerChannels { before: 10, now: 4 })), "{fewer:?}");
    fixture.server.body(guide(10, 19, now));
    let fewer = fixture.refresh(START).await;
    assert!(matches!(fewer, Err(GuideError::FewerProgrammes { before: 400, now: 190 })), "{fewer:?}");
    assert_eq!(fixture.programmes().await, all);
    assert!(fixture.state().message.contains("confirm"), "{}", fixture.state().message);
    // The former guide has 20 programmes left per channel, and half of them is enough.
    fixture.server.body(guide(10, 30, now));
    fixture.refresh(START + 20 * 3_600_000).await.unwrap();
    let cut = &text[..text.rfind("<programme").unwrap()];
    fixture.server.body(cut);
    let truncated = fixture.refresh(START).await;
    assert!(matches!(truncated, Err(GuideError::Truncated { n_programmes: 399 })), "{truncated:?}");
    assert_eq!(fixture.force(START).await.unwrap().n_programmes, 399);
    fixture.server.body(guide(4, 5, now));
    assert_eq!(fixture.force(START).await.unwrap().n_channels, 4);
    // Nothing of the former guide is left to lose.
    fixture.server.body(guide(1, 1, now + 90 * 86_400));
    fixture.refresh(START + 90 * DAY).await.unwrap();
    fixture.server.body("<tv></tv>");
    assert!(matches!(fixture.force(START + 90 * DAY).await, Err(GuideError::Empty)), "never an empty one");
}

/// Holds T-epg.1. The limit of the fixture is a sixteenth of what the file unpacks to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_file_that_unpacks_to_a_large_one_is_refused_at_the_limit_in_little_memory() {
    /// The dictionaries of both layers, the buffers, and what the store needs for the failure.
    const GROWTH_MAX: usize = 24 << 20;
    let fixture = GuideFixture::new().await;
    let bomb = bytes_of(XZ_BOMB);
    assert!(bomb.len() < 1_000);
    fixture.server.body(bomb);
    let before = MEMORY.allocated();
    let (peak, n_reports) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen, counted) = (peak.clone(), n_reports.clone());
    let look = move |_| {
        seen.fetch_max(MEMORY.allocated(), Ordering::Relaxed);
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let options = GuideOptions { at: Some(START), ..GuideOptions::default() };
    let refused = fixture.refresh_with(options, look).await.unwrap_err();
    assert_eq!(
        refused.sentence(),
        format!("Failed to read the guide: it is longer than {} bytes.", 64 << 20)
    );
    let growth = peak.load(Ordering::Relaxed).saturating_sub(before);
    assert!(n_reports.load(Ordering::Relaxed) > 8, "the memory is looked at while the file is unpacked");
    assert!(growth < GROWTH_MAX, "{} KiB", growth >> 10);
    assert_eq!(fixture.state().message, refused.sentence());
    assert!(fixture.channels().await.is_empty());
}
