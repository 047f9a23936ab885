//! Programs that need another answer than the standard one, as data, each with its evidence.

use crate::output_format::SegmentContainer;

/// A program that uses the emulated tuner and does not follow the answers of real tuners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunerClient {
    /// The start of its `User-Agent`.
    pub agent: &'static str,
    /// The status by which it recognises that all tuners are in use.
    pub all_in_use: u16,
    /// How this is known.
    pub evidence: &'static str,
}

/// The status by which other programs recognise that all tuners are in use. Real tuners send it.
pub const ALL_IN_USE: u16 = 503;

/// The known programs.
pub const TUNER_CLIENTS: [TunerClient; 1] = [TunerClient {
    agent: "Kodi/",
    all_in_use: 403,
    evidence: "pvr.hdhomerun 20.4.0 reads the status of the stream before it plays: 403 shows \"all tuners in use\", any \
               other error shows nothing.",
}];

/// Returns the status by which the program with this user agent recognises that all tuners are in use.
pub fn all_tuners_in_use(agent: &str) -> u16 {
    TUNER_CLIENTS.iter().find(|it| agent.starts_with(it.agent)).map_or(ALL_IN_USE, |it| it.all_in_use)
}

/// A list that is answered as an array if no page of it is requested. All other lists are answered in an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayList {
    /// Path of the list, with its parameters in braces.
    pub path: &'static str,
    /// Whether only programs that send no `User-Agent` get an array; the specification promises others an envelope.
    pub without_agent: bool,
    /// The program that reads an array.
    pub client: &'static str,
    /// How this is known.
    pub evidence: &'static str,
}

impl ArrayList {
    /// A list that everybody gets as an array.
    const fn new(path: &'static str, client: &'static str, evidence: &'static str) -> Self {
        Self { path, without_agent: false, client, evidence }
    }

    /// A list that only programs without a `User-Agent` get as an array.
    const fn without_agent(path: &'static str, client: &'static str, evidence: &'static str) -> Self {
        Self { path, without_agent: true, client, evidence }
    }
}

const DISPATCHARR_PAGE: &str = "the web page of Dispatcharr 0.29";
const RECORDED: &str = "Dispatcharr 0.29 was recorded with an array, and its own page reads one.";
const MCP: &str = "dispatcharr-mcp 0.3.0";
const MCP_SOURCE: &str =
    "Its tools declare a list as their result, and Dispatcharr 0.29 was recorded with one.";
const KODI_ADD_ON: &str = "pvr.dispatcharr (lukefor)";
const KODI_ADD_ON_SOURCE: &str = "Its source reads only a body that begins with a bracket, and libcurl sends no user agent unless it is told.";

/// The lists that are answered as an array.
pub const ARRAY_LISTS: [ArrayList; 17] = [
    ArrayList::new("/api/epg/sources/", MCP, MCP_SOURCE),
    ArrayList::new(
        "/api/epg/epgdata/",
        "EPG Janitor",
        "The plugin goes through the answer as through a list.",
    ),
    ArrayList::new("/api/vod/categories/", MCP, MCP_SOURCE),
    ArrayList::new("/api/connect/integrations/", MCP, MCP_SOURCE),
    ArrayList::new("/api/connect/integrations/{id}/subscriptions/", DISPATCHARR_PAGE, RECORDED),
    ArrayList::new("/api/connect/subscriptions/", DISPATCHARR_PAGE, RECORDED),
    ArrayList::new("/api/backups/", DISPATCHARR_PAGE, RECORDED),
    ArrayList::new("/api/channels/channels/summary/", DISPATCHARR_PAGE, RECORDED),
    ArrayList::new("/api/channels/channels/{id}/streams/", DISPATCHARR_PAGE, RECORDED),
    ArrayList::new("/api/channels/channels/{id}/streams/stats/", DISPATCHARR_PAGE, RECORDED),
    ArrayList::new(
        "/api/vod/movies/{id}/providers/",
        "emby-xtream",
        "It reads the providers of films as a list.",
    ),
    ArrayList::new("/api/vod/series/{id}/providers/", DISPATCHARR_PAGE, RECORDED),
    ArrayList::new("/api/vod/series/{id}/episodes/", DISPATCHARR_PAGE, RECORDED),
    ArrayList::without_agent("/api/channels/channels/", KODI_ADD_ON, KODI_ADD_ON_SOURCE),
    ArrayList::without_agent(
        "/api/channels/channels/",
        "emby-xtream",
        "Its source reads a list, with `limit` instead of pages; HttpClient of .NET sends no user agent.",
    ),
    ArrayList::without_agent("/api/channels/recurring-rules/", KODI_ADD_ON, KODI_ADD_ON_SOURCE),
    ArrayList::without_agent("/api/channels/recordings/", KODI_ADD_ON, KODI_ADD_ON_SOURCE),
];

/// Returns whether programs with this user agent get the list at this path as an array.
pub fn reads_array(path: &str, agent: &str) -> bool {
    ARRAY_LISTS.iter().any(|it| it.path == path && (!it.without_agent || agent.is_empty()))
}

/// The lists for which an unknown `ordering` is ignored with a warning instead of refused. Dispatcharr 0.29 was recorded
/// with an answer in its own order, and its clients send orders of their versions.
pub const LENIENT_ORDERINGS: [&str; 6] = [
    "/api/channels/",
    "/api/channels/channels/",
    "/api/channels/streams/",
    "/api/vod/all/",
    "/api/vod/movies/",
    "/api/vod/series/",
];

/// A route whose refusals have the reason also as `error`, where clients of Dispatcharr read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorMember {
    /// Path of the route, with its parameters in braces.
    pub path: &'static str,
    /// Whether they also have `success`, which is false.
    pub has_success: bool,
}

const fn error(path: &'static str) -> ErrorMember {
    ErrorMember { path, has_success: false }
}

const fn no_success(path: &'static str) -> ErrorMember {
    ErrorMember { path, has_success: true }
}

/// The routes that were recorded of Dispatcharr 0.29 with these members in refusals; those of plugins have their own.
pub const ERROR_MEMBERS: [ErrorMember; 30] = [
    error("/api/accounts/initialize-superuser/"),
    error("/api/catchup/sessions/"),
    error("/api/catchup/sessions/{session}/"),
    error("/api/catchup/sessions/{session}/position/"),
    error("/api/channels/channels/from-stream/"),
    error("/api/channels/channels/from-stream/bulk/"),
    error("/api/channels/channels/{id}/set-epg/"),
    error("/api/channels/groups/{id}/"),
    error("/api/channels/logos/upload/"),
    error("/api/channels/profiles/{id}/channels/bulk-update/"),
    no_success("/api/channels/recordings/{id}/extend/"),
    error("/api/channels/recordings/{id}/file/"),
    no_success("/api/channels/recordings/{id}/stop/"),
    no_success("/api/channels/recordings/{id}/update-metadata/"),
    error("/api/channels/series-rules/"),
    error("/api/channels/series-rules/bulk-remove/"),
    error("/api/epg/current-programs/"),
    error("/api/epg/programs/search/"),
    error("/api/m3u/accounts/{id}/group-settings/"),
    error("/api/m3u/accounts/{id}/refresh-vod/"),
    no_success("/api/m3u/refresh-account-info/{profile_id}/"),
    error("/api/vod/movies/{id}/provider-info/"),
    error("/proxy/catchup/stop_client"),
    error("/proxy/ts/change_stream/{uuid}"),
    error("/proxy/ts/next_stream/{uuid}"),
    error("/proxy/ts/status/{uuid}"),
    no_success("/proxy/ts/stop/{uuid}"),
    no_success("/proxy/ts/stop_client/{uuid}"),
    error("/proxy/ts/stream/{target}"),
    error("/proxy/vod/stop_client"),
];

/// A kind of programs that play HLS, and the container that it plays best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HlsClient {
    /// A part of its `User-Agent`.
    pub agent: &'static str,
    pub container: SegmentContainer,
    /// How this is known.
    pub evidence: &'static str,
}

/// The known programs; the first one whose text the user agent contains counts. Others get transport streams, which every
/// player of HLS has played from the beginning.
pub const HLS_CLIENTS: [HlsClient; 10] = [
    HlsClient {
        agent: "AppleCoreMedia",
        container: SegmentContainer::Fmp4,
        evidence: "The HLS authoring specification for Apple devices requires fMP4 for HEVC; players of iOS 10 and later \
                   play it.",
    },
    HlsClient {
        agent: "HbbTV",
        container: SegmentContainer::Ts,
        evidence: "HbbTV requires HLS with transport streams only; its user agent also contains `Mozilla/5.0`.",
    },
    HlsClient {
        agent: "SMART-TV",
        container: SegmentContainer::Ts,
        evidence: "Tizen 2.x plays HLS up to version 3, before fMP4; its user agent also contains `Mozilla/5.0`.",
    },
    HlsClient {
        agent: "SmartTV",
        container: SegmentContainer::Ts,
        evidence: "As for `SMART-TV`, in another spelling.",
    },
    HlsClient {
        agent: "Web0S",
        container: SegmentContainer::Ts,
        evidence: "The player of webOS 3.x plays HLS up to version 5 without fMP4; `Mozilla/5.0` too.",
    },
    HlsClient {
        agent: "NetCast",
        container: SegmentContainer::Ts,
        evidence: "The predecessor of webOS, with HLS of version 3.",
    },
    HlsClient {
        agent: "MAG",
        container: SegmentContainer::Ts,
        evidence: "Set-top boxes with `Mozilla/5.0 (QtEmbedded; …) MAG200 stbapp`: their demuxer has no fMP4.",
    },
    HlsClient {
        agent: "QtEmbedded",
        container: SegmentContainer::Ts,
        evidence: "As for `MAG`, by clones of these boxes.",
    },
    HlsClient {
        agent: "Maple",
        container: SegmentContainer::Ts,
        evidence: "The platform of televisions before Tizen, with HLS of version 3.",
    },
    HlsClient {
        agent: "Mozilla/",
        container: SegmentContainer::Fmp4,
        evidence: "Browsers play fMP4 as it is; hls.js would have to convert transport streams, and does not convert HEVC \
                   in them before version 1.6.",
    },
];

/// Returns the container of segments for the program with this user agent.
pub fn segment_container(agent: &str) -> SegmentContainer {
    HLS_CLIENTS.iter().find(|it| agent.contains(it.agent)).map_or(SegmentContainer::Ts, |it| it.container)
}

/// Sounds, as RFC 6381 names them, that browsers and Apple devices do not play in fMP4 although it carries them. Only those
/// of Apple play AC-3 and E-AC-3; `mp4a.40.33` and `mp4a.40.34` are MPEG audio of the layers II and III.
const SOUNDS_OF_TELEVISION: [&str; 4] = ["ac-3", "ec-3", "mp4a.40.33", "mp4a.40.34"];

/// Returns whether the program with this user agent plays a sound in fMP4. Programs that are not known play everything.
pub fn plays_sound(agent: &str, codec: &str) -> bool {
    let is_apple = is_apple(agent);
    let is_known = is_apple || agent.contains("Mozilla/");
    let is_dolby = codec == "ac-3" || codec == "ec-3";
    !is_known || !SOUNDS_OF_TELEVISION.contains(&codec) || (is_apple && is_dolby)
}

/// Returns whether the program with this user agent plays MPEG audio and AAC in transport streams, but not all of that in
/// fMP4. It gets a channel without a picture in transport streams, as it is.
pub fn plays_radio_in_ts(agent: &str) -> bool {
    is_apple(agent) && segment_container(agent) == SegmentContainer::Fmp4
}

/// Returns whether a program is the player of an Apple device: its own, or Safari.
fn is_apple(agent: &str) -> bool {
    agent.contains("AppleCoreMedia")
        || (agent.contains("Safari/")
            && !["Chrome", "Chromium", "Android"].iter().any(|it| agent.contains(it)))
}

/// A media server, which reads guides for its own library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaServer {
    /// The start of its `User-Agent`.
    pub agent: &'static str,
    /// How this is known.
    pub evidence: &'static str,
}

/// The known media servers.
pub const MEDIA_SERVERS: [MediaServer; 3] = [
    MediaServer {
        agent: "Jellyfin",
        evidence: "`Jellyfin-Server/10.9.0`; it reads `<live/>`, and compares categories with its lists.",
    },
    MediaServer { agent: "Emby", evidence: "Jellyfin has its lists of categories from it." },
    MediaServer {
        agent: "PlexMediaServer",
        evidence: "`PlexMediaServer/1.40.1`, which reads the guide of its tuners.",
    },
];

/// Returns whether the program with this user agent is a media server.
pub fn is_media_server(agent: &str) -> bool {
    MEDIA_SERVERS.iter().any(|it| agent.starts_with(it.agent))
}

/// A name in user agents that says nothing about the device: many programs send it, or one that watches for many people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedAgent {
    /// The start of a part of the `User-Agent`, in lower case.
    pub agent: &'static str,
    /// How this is known.
    pub evidence: &'static str,
}

/// The known names.
pub const SHARED_AGENTS: [SharedAgent; 27] = [
    SharedAgent { agent: "lavf", evidence: "The default of FFmpeg's HTTP client, also in media servers." },
    SharedAgent { agent: "ffmpeg", evidence: "Scripts and media servers that name the program instead." },
    SharedAgent { agent: "libmpv", evidence: "The default of programs with libmpv." },
    SharedAgent { agent: "mpv", evidence: "The name of mpv in programs that contain it." },
    SharedAgent { agent: "gstreamer", evidence: "The default of GStreamer's HTTP sources." },
    SharedAgent { agent: "souphttpsrc", evidence: "`GStreamer souphttpsrc 1.20.3 libsoup/2.74.2`." },
    SharedAgent { agent: "libsoup", evidence: "The default of libsoup; also the end of that of GStreamer." },
    SharedAgent { agent: "libvlc", evidence: "Programs with libVLC; VLC itself begins with `VLC/`." },
    SharedAgent { agent: "okhttp", evidence: "The default of OkHttp; apps put their name before it." },
    SharedAgent { agent: "exoplayerlib", evidence: "ExoPlayer without the name of its app." },
    SharedAgent {
        agent: "androidxmedia3",
        evidence: "Media3, the successor of ExoPlayer, without the name of its app.",
    },
    SharedAgent { agent: "dalvik", evidence: "The default of Android's HTTP client." },
    SharedAgent { agent: "curl", evidence: "curl, also in scripts that serve many." },
    SharedAgent { agent: "wget", evidence: "GNU Wget." },
    SharedAgent { agent: "python-requests", evidence: "The default of requests." },
    SharedAgent { agent: "python-urllib", evidence: "The default of Python." },
    SharedAgent { agent: "python", evidence: "`Python/3.12 aiohttp/3.9.1`, the default of aiohttp." },
    SharedAgent { agent: "aiohttp", evidence: "As for `python`." },
    SharedAgent { agent: "go-http-client", evidence: "The default of Go, in which gateways are written." },
    SharedAgent { agent: "java", evidence: "The default of Java." },
    SharedAgent {
        agent: "jellyfin",
        evidence: "`Jellyfin-Server/10.9.0`: it passes streams on to its users.",
    },
    SharedAgent { agent: "emby", evidence: "A media server, as `jellyfin`." },
    SharedAgent { agent: "plexmediaserver", evidence: "A media server, as `jellyfin`." },
    SharedAgent { agent: "tvheadend", evidence: "`TVHeadend/4.3`: it passes streams on." },
    SharedAgent { agent: "threadfin", evidence: "A proxy of playlists." },
    SharedAgent { agent: "xteve", evidence: "A proxy of playlists." },
    SharedAgent { agent: "headwater", evidence: "Another gateway of this kind." },
];

/// Returns whether a user agent names nothing but libraries and programs that watch for many people, or nothing at all.
pub fn is_shared_agent(agent: &str) -> bool {
    let mut depth = 0_usize;
    let without_comments = agent.chars().filter(|it| {
        match it {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    });
    let names: String = without_comments.flat_map(char::to_lowercase).collect();
    let is_version = |it: &str| it.starts_with(|first: char| first.is_ascii_digit());
    let mut names = names.split([' ', ';', ',']).filter(|it| !it.is_empty() && !is_version(it));
    names.all(|name| SHARED_AGENTS.iter().any(|it| has_name(name, it.agent)))
}

/// Returns whether a part of a user agent begins with this name, and not with a longer word.
fn has_name(part: &str, name: &str) -> bool {
    let rest = part.strip_prefix(name);
    rest.is_some_and(|it| !it.starts_with(|next: char| next.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_lists_are_arrays_and_some_only_for_programs_without_a_user_agent() {
        let check = |path: &str, with: bool, without: bool| {
            let found = (reads_array(path, "curl/8.5"), reads_array(path, ""));
            assert_eq!(found, (with, without), "{path}");
        };
        check("/api/epg/sources/", true, true);
        check("/api/channels/recurring-rules/", false, true);
        check("/api/channels/channels/", false, true);
        check("/api/channels/groups/", false, false);
    }

    #[test]
    fn names_of_libraries_and_media_servers_say_nothing_about_the_device() {
        for (agent, expected) in [
            ("", true),
            ("Lavf/60.16.100", true),
            ("libmpv", true),
            ("mpv 0.37.0", true),
            ("GStreamer souphttpsrc 1.20.3 libsoup/2.74.2", true),
            ("okhttp/4.9.0", true),
            ("OkHttp/5.0.0-alpha.11", true),
            ("ExoPlayerLib/2.19.1", true),
            ("AndroidXMedia3/1.4.1 (Linux; Android 14)", true),
            ("Dalvik/2.1.0 (Linux; U; Android 12; AFTKA Build/PS7653)", true),
            ("Python/3.12 aiohttp/3.9.1", true),
            ("Python-urllib/3.11", true),
            ("Jellyfin-Server/10.9.0", true),
            ("PlexMediaServer/1.40", true),
            ("TVHeadend/4.3", true),
            ("Headwater/0.2.0", true),
            ("LibVLC/3.0.20 (LIVE555 Streaming Media v2016.11.28)", true),
            // Names of devices and apps.
            ("VLC/3.0.20 LibVLC/3.0.20", false),
            ("MyTV/3 okhttp/4.9.0", false),
            ("TiviMate/4.7.0 (Android 11)", false),
            ("OTT Navigator/1.7 (Linux;Android 11) ExoPlayerLib/2.11.3", false),
            ("Kodi/20.1 (X11; Linux x86_64) App_Bitness/64 Version/20.1-Git", false),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131 Safari/537.36",
                false,
            ),
            ("AppleCoreMedia/1.0.0.21E219 (iPhone; U; CPU OS 17_4 like Mac OS X; en_us)", false),
            ("Javascript-TV/1", false),
            ("Tivi", false),
            ("tv", false),
        ] {
            assert_eq!(is_shared_agent(agent), expected, "{agent}");
        }
    }

    #[test]
    fn browsers_play_other_sounds_than_set_top_boxes() {
        const CHROME: &str =
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131 Safari/537.36";
        const SAFARI: &str = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/17.4 Safari/605.1.15";
        for (agent, codec, expected) in [
            (CHROME, "mp4a.40.2", true),
            (CHROME, "ac-3", false),
            (CHROME, "mp4a.40.33", false),
            (CHROME, "mp4a.40.34", false),
            (CHROME, "opus", true),
            (SAFARI, "ac-3", true),
            (SAFARI, "mp4a.40.34", false),
            ("AppleCoreMedia/1.0.0.21E219", "ec-3", true),
            ("VLC/3.0.20", "mp4a.40.34", true),
        ] {
            assert_eq!(plays_sound(agent, codec), expected, "{agent} {codec}");
        }
    }

    #[test]
    fn players_of_apple_devices_get_radio_in_transport_streams() {
        for (agent, expected) in [
            ("AppleCoreMedia/1.0.0.21E219 (iPhone; U; CPU OS 17_4 like Mac OS X; en_us)", true),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/17.4 Safari/605.1.15",
                true,
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131 Safari/537.36",
                false,
            ),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0", false),
            // Gets transport streams anyway.
            ("Mozilla/5.0 (SMART-TV; Linux; Tizen 2.4.0) AppleWebKit/538.1 Safari/538.1", false),
            ("VLC/3.0.20 LibVLC/3.0.20", false),
            ("", false),
        ] {
            assert_eq!(plays_radio_in_ts(agent), expected, "{agent}");
        }
    }

    #[test]
    fn players_get_the_container_that_they_play_best() {
        let (ts, fmp4) = (SegmentContainer::Ts, SegmentContainer::Fmp4);
        for (agent, expected) in [
            ("AppleCoreMedia/1.0.0.21E219 (iPhone; U; CPU OS 17_4 like Mac OS X; en_us)", fmp4),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131 Safari/537.36",
                fmp4,
            ),
            ("Mozilla/5.0 (SMART-TV; Linux; Tizen 2.4.0) AppleWebKit/538.1 Safari/538.1", ts),
            ("Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 Chrome/38", ts),
            ("Mozilla/5.0 (QtEmbedded; U; Linux; C) AppleWebKit/533.3 MAG200 stbapp ver: 2 rev: 250", ts),
            ("VLC/3.0.20 LibVLC/3.0.20", ts),
            ("Lavf/60.16.100", ts),
            ("ExoPlayerLib/2.19.1", ts),
            ("", ts),
        ] {
            assert_eq!(segment_container(agent), expected, "{agent}");
        }
    }

    #[test]
    fn media_servers_are_recognised_and_apps_for_them_are_not() {
        for (agent, expected) in [
            ("Jellyfin-Server/10.9.0", true),
            ("Emby Server 4.8", true),
            ("PlexMediaServer/1.40.1", true),
            ("Kodi/20.1 (X11; Linux x86_64)", false),
            ("Mozilla/5.0 Jellyfin", false),
            ("", false),
        ] {
            assert_eq!(is_media_server(agent), expected, "{agent}");
        }
    }

    #[test]
    fn programs_are_recognised_by_the_start_of_their_user_agent() {
        for (agent, expected) in [
            ("Kodi/20.1 (X11; Linux x86_64) App_Bitness/64 Version/20.1-Git", 403),
            ("Lavf/60.16.100", 503),
            ("Mozilla/5.0 Kodi/20", 503),
            ("", 503),
        ] {
            assert_eq!(all_tuners_in_use(agent), expected, "{agent}");
        }
    }
}
