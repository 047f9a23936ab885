//! How ffmpeg reads addresses that the gateway cannot read itself.

use crate::command::{Argv, CommandTemplate, CommandValues};
use crate::proxy::{ProxyAddress, ProxyScheme};
use crate::secret::Secret;
use crate::source_url::SourceUrl;
use crate::stream::RequestHeaders;
use crate::stream_profile::{Delivery, StreamProfile};

/// Headers without secrets. ffmpeg sends headers to every server that a playlist names, so no others are passed to it.
/// Cookies have an option of their own, which names their server.
const SHAREABLE: [&str; 4] = ["accept", "accept-language", "cache-control", "origin"];

/// An address that ffmpeg reads.
#[derive(Clone, Copy)]
pub struct FfmpegInput<'a> {
    pub url: &'a SourceUrl,
    /// The headers of stream and account.
    pub headers: &'a RequestHeaders,
    /// Whether the server of the address is the one that the secrets among the headers are meant for.
    pub is_trusted: bool,
    /// Cookies that the server has set, each as in a `Set-Cookie` header, with path and domain.
    pub cookies: &'a [String],
    /// The name of ffmpeg's input format; `None` if ffmpeg has to recognise it.
    pub format: Option<&'a str>,
    /// The position of the variant to play in a list of variants, from 0.
    pub variant: Option<u32>,
}

/// Returns the options for an input that ffmpeg reads through a proxy, which it passes on to the segments of a playlist.
/// `None` if ffmpeg does not know the protocol of the proxy.
pub fn proxy_options(proxy: &ProxyAddress) -> Option<Vec<String>> {
    match proxy.scheme {
        ProxyScheme::Http => Some(vec!["-http_proxy".to_owned(), proxy.expose()]),
        ProxyScheme::Https | ProxyScheme::Socks5 => None,
    }
}

/// Returns the command for this input through a proxy that ffmpeg can use.
pub fn playlist_command_through(input: &FfmpegInput<'_>, proxy: Option<&ProxyAddress>) -> Argv {
    let options = proxy.and_then(proxy_options).unwrap_or_default();
    playlist_command(input).with_input_options(options)
}

/// Returns the command of the built-in profile *FFmpeg copy* for this input.
pub fn playlist_command(input: &FfmpegInput<'_>) -> Argv {
    let profile = StreamProfile::from_delivery(Delivery::Command);
    let values = CommandValues {
        stream_url: input.url.expose(),
        user_agent: input.headers.user_agent.as_deref().filter(|_| input.url.is_http()),
        channel_id: "",
        protocols: protocols(input.url),
    };
    let filled = CommandTemplate::new(&profile.command, &profile.parameters).map(|it| it.fill(values));
    // The built-in command is valid.
    let argv =
        filled.unwrap_or_else(|_| Argv { program: profile.command, arguments: Vec::new(), input: None });
    let argv = argv.with_input_options(input_options(input));
    match input.variant {
        Some(variant) => argv.with_program(variant),
        None => argv,
    }
}

/// Returns the command of the built-in profile *FFmpeg copy* for a DASH stream that this key decrypts.
///
/// The arguments of a program are visible to every other program, and no option of ffmpeg reads a key from a file. So the
/// address is in a script of the format `ffconcat` on the standard input, whose directive `option` passes the key to the
/// reader of the stream ("concat" in the documentation of ffmpeg's formats).
pub(crate) fn clear_key_command(
    url: &SourceUrl,
    headers: &RequestHeaders,
    proxy: Option<&ProxyAddress>,
    key: &Secret,
) -> Option<Argv> {
    let profile = StreamProfile::from_delivery(Delivery::Command);
    let protocols = format!("pipe,{}", protocols(url));
    let values =
        CommandValues { stream_url: "pipe:0", user_agent: None, channel_id: "", protocols: &protocols };
    let argv = CommandTemplate::new(&profile.command, &profile.parameters).ok()?.fill(values);
    let mut script = format!("ffconcat version 1.0\nfile {}\n", quoted(url.expose())?);
    let input = FfmpegInput { url, headers, is_trusted: true, cookies: &[], format: None, variant: None };
    let mut options = input_options(&input);
    options.extend(proxy.and_then(proxy_options).unwrap_or_default());
    if let Some(agent) = &headers.user_agent {
        options.extend(["-user_agent".to_owned(), agent.clone()]);
    }
    options.extend(["-cenc_decryption_key".to_owned(), key.expose().to_owned()]);
    for option in options.chunks_exact(2) {
        // A script has no line breaks in values. Of several headers or cookies, the first is passed on.
        let value = option[1].lines().next().unwrap_or_default();
        script += &format!("option {} {}\n", option[0].trim_start_matches('-'), quoted(value)?);
    }
    let arguments = ["-f", "concat", "-safe", "0"].map(str::to_owned).into();
    Some(Argv { input: Some(Secret::new(script)), ..argv.with_input_options(arguments) })
}

/// Returns a value of a script in quotes; `None` if it cannot be written.
fn quoted(value: &str) -> Option<String> {
    is_one_line(value).then(|| format!("'{}'", value.replace('\'', "'\\''")))
}

/// Returns the command that converts the sound of a radio station from its standard input, in this format of ffmpeg, to AAC
/// in a transport stream.
pub fn audio_command(format: &str) -> Argv {
    let arguments = [
        "-nostdin",
        "-hide_banner",
        "-loglevel",
        "warning",
        "-stats",
        // It gets no address, and a playlist inside of the stream leads nowhere.
        "-protocol_whitelist",
        "pipe",
        "-f",
        format,
        "-i",
        "pipe:0",
        "-map",
        "0:a:0",
        "-c:a",
        "aac",
        "-b:a",
        "192k",
        "-ac",
        "2",
        "-f",
        "mpegts",
        "-mpegts_flags",
        "+resend_headers",
        "-muxdelay",
        "0",
        "-flush_packets",
        "1",
        "pipe:1",
    ];
    Argv { program: "ffmpeg".to_owned(), arguments: arguments.map(str::to_owned).into(), input: None }
}

/// Returns the options for an input besides those of the built-in profiles: its format, and what an HTTP server expects
/// in its requests.
pub(crate) fn input_options(input: &FfmpegInput<'_>) -> Vec<String> {
    let mut options = Vec::new();
    let mut option = |name: &str, value: String| options.extend([name.to_owned(), value]);
    if let Some(format) = input.format {
        // Newer versions do not recognise a playlist by its content if its address and its type look different.
        option("-f", format.to_owned());
        if format == "hls" {
            // One connection at a time: providers count them.
            option("-http_persistent", "0".to_owned());
            option("-http_multiple", "0".to_owned());
        }
    }
    // As in the address: ffmpeg compares the domain of a cookie with host and port.
    let Some(host) = input.url.authority().filter(|_| input.url.is_http()) else { return options };
    if let Some(referrer) = input.headers.referrer.as_ref().filter(|it| is_one_line(it)) {
        option("-referer", referrer.clone());
    }
    let is_shareable = |(name, value): &&(String, String)| {
        SHAREABLE.iter().any(|it| name.eq_ignore_ascii_case(it)) && is_one_line(value)
    };
    let shareable = input.headers.extra.iter().filter(is_shareable);
    let headers: String = shareable.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    if !headers.is_empty() {
        option("-headers", headers);
    }
    let own = input.headers.extra.iter().filter(|(name, value)| {
        input.is_trusted && name.eq_ignore_ascii_case("cookie") && is_one_line(value)
    });
    let own = own.flat_map(|it| it.1.split(';')).map(str::trim).filter(|it| !it.is_empty());
    let own = own.map(|it| format!("{it}; path=/; domain={host}"));
    let cookies: Vec<_> = own.chain(input.cookies.iter().filter(|it| is_one_line(it)).cloned()).collect();
    if !cookies.is_empty() {
        option("-cookies", cookies.join("\n"));
    }
    options
}

fn is_one_line(text: &str) -> bool {
    !text.contains(char::is_control)
}

/// Returns the protocols of ffmpeg that an address may lead to, by itself or through a playlist behind it.
///
/// Some of them carry others: `crypto` decrypts segments, `ffrtmphttp` is RTMP inside of HTTP. ffmpeg checks a carried
/// address as well.
pub(crate) fn protocols(url: &SourceUrl) -> &'static str {
    macro_rules! network {
        () => {
            "crypto,data,ffrtmpcrypt,ffrtmphttp,http,httpproxy,https,mmsh,mmst,rist,rtmp,rtmpe,rtmps,rtmpt,rtmpte,\
             rtmpts,rtp,srt,srtp,tcp,tls,udp"
        };
    }
    if url.is_network() { network!() } else { concat!("async,cache,concat,file,subfile,", network!()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the value of an option of the input.
    fn value(argv: &Argv, name: &str) -> Option<String> {
        let input = argv.arguments.iter().position(|it| it == "-i").unwrap();
        let at = argv.arguments[..input].iter().position(|it| it == name)?;
        Some(argv.arguments[at + 1].clone())
    }

    fn headers(lines: &[(&str, &str)]) -> RequestHeaders {
        let mut headers = RequestHeaders::default();
        for (name, value) in lines {
            assert!(headers.set(name, value));
        }
        headers
    }

    #[test]
    fn ffmpeg_gets_the_headers_that_it_may_send_to_every_server_of_a_playlist() {
        let url = SourceUrl::new("https://u:p@tv.example:8443/live/1?t=1");
        let headers = headers(&[
            ("User-Agent", "Player/1"),
            ("Referer", "http://site.example/"),
            ("Origin", "http://site.example"),
            ("Authorization", "Bearer secret"),
            ("X-Api-Key", "secret"),
            ("Cookie", "a=1; b=2"),
        ]);
        let cookies = ["t=3; path=/live; domain=tv.example".to_owned()];
        let input = FfmpegInput {
            url: &url,
            headers: &headers,
            is_trusted: true,
            cookies: &cookies,
            format: Some("hls"),
            variant: None,
        };
        let argv = playlist_command(&input);
        assert_eq!(argv.program, "ffmpeg");
        for (name, expected) in [
            ("-f", "hls"),
            ("-http_persistent", "0"),
            ("-http_multiple", "0"),
            ("-user_agent", "Player/1"),
            ("-referer", "http://site.example/"),
            ("-headers", "Origin: http://site.example\r\n"),
            (
                "-cookies",
                "a=1; path=/; domain=tv.example:8443\nb=2; path=/; domain=tv.example:8443\nt=3; path=/live; domain=tv.example",
            ),
        ] {
            assert_eq!(value(&argv, name).as_deref(), Some(expected), "{name}");
        }
        let input_at = argv.arguments.iter().position(|it| it == "-i").unwrap();
        assert_eq!(argv.arguments[input_at + 1], url.expose());
        assert!(!argv.arguments.iter().any(|it| it.contains("secret")));
        // ffmpeg makes a programme of each variant, numbered in the order of the list.
        let maps = |variant| {
            let arguments = playlist_command(&FfmpegInput { variant, ..input }).arguments;
            let maps = arguments.windows(2).filter(|it| it[0] == "-map").map(|it| it[1].clone());
            maps.collect::<Vec<_>>()
        };
        assert_eq!(maps(None), ["0:v:0?", "0:a?"]);
        assert_eq!(maps(Some(2)), ["0:p:2:v:u?", "0:p:2:a:u?"]);
        let stranger = playlist_command(&FfmpegInput { is_trusted: false, ..input });
        assert_eq!(value(&stranger, "-cookies").as_deref(), Some("t=3; path=/live; domain=tv.example"));
    }

    #[test]
    fn the_sound_of_a_station_is_converted_without_another_connection() {
        for format in ["ogg", "flac"] {
            let argv = audio_command(format);
            assert_eq!(value(&argv, "-f").as_deref(), Some(format));
            assert_eq!(value(&argv, "-protocol_whitelist").as_deref(), Some("pipe"));
            assert_eq!(argv.arguments.last().map(String::as_str), Some("pipe:1"));
            assert!(!argv.arguments.iter().any(|it| it.contains("://")));
        }
    }

    #[test]
    fn a_key_reaches_ffmpeg_through_its_standard_input_only() {
        let url = SourceUrl::new("https://tv.example/it's/1.mpd?t=1");
        let headers = headers(&[("User-Agent", "Player/1"), ("Origin", "http://o"), ("Cookie", "a=1")]);
        let argv = clear_key_command(&url, &headers, None, &Secret::new("00ff")).unwrap();
        assert_eq!(
            argv.input.as_ref().unwrap().expose(),
            "ffconcat version 1.0\n\
             file 'https://tv.example/it'\\''s/1.mpd?t=1'\n\
             option headers 'Origin: http://o'\n\
             option cookies 'a=1; path=/; domain=tv.example'\n\
             option user_agent 'Player/1'\n\
             option cenc_decryption_key '00ff'\n"
        );
        let arguments = argv.arguments.join(" ");
        assert!(arguments.contains("-f concat -safe 0 -i pipe:0 "), "{arguments}");
        for secret in ["00ff", "tv.example", "Player", "a=1"] {
            assert!(!arguments.contains(secret), "{arguments}");
        }
        assert!(value(&argv, "-protocol_whitelist").unwrap().starts_with("pipe,"));
        assert!(!format!("{argv:?}").contains("00ff"));
        let broken = SourceUrl::new("http://h/\nfile x");
        assert_eq!(clear_key_command(&broken, &RequestHeaders::default(), None, &Secret::new("0")), None);
    }

    #[test]
    fn an_input_without_headers_or_without_http_gets_no_option_for_them() {
        let all = headers(&[("User-Agent", "a"), ("Referer", "b"), ("Cookie", "c=1"), ("Origin", "d")]);
        for (url, headers) in [("udp://@239.0.0.1:1", &all), ("http://h/1", &RequestHeaders::default())] {
            let url = SourceUrl::new(url);
            let argv = playlist_command(&FfmpegInput {
                url: &url,
                headers,
                is_trusted: true,
                cookies: &[],
                format: None,
                variant: None,
            });
            for name in ["-f", "-http_persistent", "-user_agent", "-referer", "-headers", "-cookies"] {
                assert_eq!(value(&argv, name), None, "{} {name}", url.expose());
            }
        }
    }
}
