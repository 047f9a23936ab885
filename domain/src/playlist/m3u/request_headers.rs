//! Parses the request headers of an entry, which are written in four different ways.

use super::{ItemReader, Out, PlaylistProblemKind, text};

impl ItemReader {
    /// `http-user-agent=…` and similar ones; other options do not concern requests.
    pub(super) fn player_option(&mut self, number: u64, rest: &str, out: Out<'_>) {
        let Some((key, value)) = rest.split_once('=') else { return };
        let value = text::unquote(value.trim());
        let name = match key.trim().trim_start_matches('-').to_ascii_lowercase().as_str() {
            "http-user-agent" => "User-Agent",
            "http-referrer" | "http-referer" => "Referer",
            "http-origin" => "Origin",
            "http-cookie" | "http-cookies" => "Cookie",
            _ => return,
        };
        self.request_header(number, name, value, out);
    }

    /// `{"User-Agent": "…", "Cookie": "…"}`.
    pub(super) fn json_headers(&mut self, number: u64, rest: &str, out: Out<'_>) {
        let Ok(map) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(rest.trim()) else {
            return self.problem(
                number,
                PlaylistProblemKind::BadHeader,
                "#EXTHTTP is not a JSON object",
                out,
            );
        };
        for (name, value) in &map {
            match value {
                serde_json::Value::String(value) => self.request_header(number, name, value, out),
                serde_json::Value::Number(value) => {
                    self.request_header(number, name, &value.to_string(), out)
                }
                _ => self.problem(
                    number,
                    PlaylistProblemKind::BadHeader,
                    "a header in #EXTHTTP is not a text",
                    out,
                ),
            }
        }
    }

    /// `User-Agent=…&Referer=…`, each value percent-encoded.
    pub(super) fn header_list(&mut self, number: u64, list: &str, out: Out<'_>) {
        // Options of players that appear among the headers.
        const OPTIONS: [&str; 8] = [
            "acceptencoding",
            "active-remote",
            "auth",
            "connection-timeout",
            "failonerror",
            "redirect-limit",
            "seekable",
            "verifypeer",
        ];
        for (name, value) in list.split('&').filter_map(|it| it.split_once('=')) {
            let name = text::percent_decode(name.trim().trim_start_matches('!'));
            if !OPTIONS.iter().any(|it| name.eq_ignore_ascii_case(it)) {
                self.request_header(number, &name, &text::percent_decode(value), out);
            }
        }
    }

    pub(super) fn request_header(&mut self, number: u64, name: &str, value: &str, out: Out<'_>) {
        let value = text::clean(value);
        if value.is_empty() {
            return;
        }
        if value.len() > self.limits.url_bytes_max || !self.draft.headers.set(name, &value) {
            self.problem(number, PlaylistProblemKind::BadHeader, "a request header cannot be used", out);
        }
    }
}
