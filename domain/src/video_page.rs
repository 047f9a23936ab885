//! Addresses of pages that play a video in a browser. The gateway cannot read them; Streamlink can.

use crate::source_url::SourceUrl;

/// The name of the program that plays pages.
pub const PAGE_PROGRAM: &str = "streamlink";

/// Hosts of sites whose pages Streamlink plays, with the name of the site. Hosts below one count as well.
const SITES: [(&str, &str); 20] = [
    ("youtube.com", "YouTube"),
    ("youtu.be", "YouTube"),
    ("youtube-nocookie.com", "YouTube"),
    ("twitch.tv", "Twitch"),
    ("dailymotion.com", "Dailymotion"),
    ("dai.ly", "Dailymotion"),
    ("vimeo.com", "Vimeo"),
    ("kick.com", "Kick"),
    ("facebook.com", "Facebook"),
    ("ok.ru", "OK.ru"),
    ("vk.com", "VK"),
    ("rumble.com", "Rumble"),
    ("trovo.live", "Trovo"),
    ("tiktok.com", "TikTok"),
    ("bilibili.com", "Bilibili"),
    ("huya.com", "Huya"),
    ("afreecatv.com", "SOOP"),
    ("sooplive.co.kr", "SOOP"),
    ("picarto.tv", "Picarto"),
    ("steamcommunity.com", "Steam"),
];

/// Extensions of streams and files, which such a site may serve from its own hosts.
const FILE_EXTENSIONS: [&str; 6] = ["m3u8", "mpd", "ts", "mp4", "mkv", "aac"];

/// Returns the name of the site if the address is a page of one that Streamlink plays.
pub fn site_of(url: &SourceUrl) -> Option<&'static str> {
    let host = url.host().filter(|_| url.is_http())?.trim_end_matches('.').to_ascii_lowercase();
    let is_below = |site: &str| host.strip_suffix(site).is_some_and(|it| it.is_empty() || it.ends_with('.'));
    let site = SITES.iter().find(|it| is_below(it.0))?.1;
    let last = url.path().rsplit('/').next().unwrap_or_default();
    let extension = last.rsplit_once('.').map_or("", |it| it.1).to_ascii_lowercase();
    let has_page = url.path().len() > 1;
    (has_page && !FILE_EXTENSIONS.contains(&extension.as_str())).then_some(site)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_known_sites_are_recognised_and_their_files_are_not() {
        for (url, expected) in [
            ("https://www.youtube.com/watch?v=abc", Some("YouTube")),
            ("https://youtube.com/@news/live", Some("YouTube")),
            ("https://m.youtube.com/live/abc", Some("YouTube")),
            ("https://youtu.be/abc", Some("YouTube")),
            ("HTTPS://WWW.TWITCH.TV/somebody", Some("Twitch")),
            ("https://www.dailymotion.com/video/x1", Some("Dailymotion")),
            ("https://www.youtube.com", None),
            ("https://www.youtube.com/", None),
            ("https://manifest.youtube.com/api/hls/index.m3u8?x=1", None),
            ("https://cdn.twitch.tv/a/b.ts", None),
            ("https://notyoutube.com/watch?v=abc", None),
            ("https://youtube.com.example/watch", None),
            ("http://tv.example/youtube.com/1", None),
            ("udp://youtube.com/1", None),
        ] {
            assert_eq!(site_of(&SourceUrl::new(url)), expected, "{url}");
        }
    }
}
