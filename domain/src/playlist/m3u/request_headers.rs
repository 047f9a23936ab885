//! Parses the request headers and the options of an entry, which are written in four different ways.

use super::options::{OptionMeaning, for_each_header_line, for_each_option, meaning};
use super::{ItemReader, Out, PlaylistProblemKind, text};
use crate::entry_details::{OptionForm, PLAYER_OPTIONS_MAX, PlayerOption};

impl ItemReader {
    /// `:http-user-agent=…` and similar ones, as VLC has them; other options are kept for players. People also write the
    /// option as on the command line, `--http-user-agent=…`, with or without the colon.
    pub(super) fn player_option(&mut self, number: u64, rest: &str, out: Out<'_>) {
        let Some((name, value)) = rest.split_once('=') else { return };
        let name =
            name.trim_start_matches(|it: char| matches!(it, ':' | '-') || it.is_whitespace()).trim_end();
        self.option(number, OptionForm::Vlc, name, text::unquote(value.trim()), out);
    }

    /// `inputstream.adaptive.manifest_type=mpd`. The properties are kept for Kodi, also those with headers.
    pub(super) fn kodi_property(&mut self, number: u64, rest: &str, out: Out<'_>) {
        let Some((name, value)) = rest.split_once('=') else { return };
        let (name, value) = (name.trim(), value.trim());
        self.keep_option(number, OptionForm::Kodi, name, value, out);
        match meaning(name) {
            Some(OptionMeaning::HeaderList) => self.header_list(number, value, out),
            Some(OptionMeaning::Header(header)) => {
                self.request_header(number, header, text::unquote(value), out);
            }
            _ => {}
        }
    }

    /// `{"User-Agent": "…", "Cookie": "…"}`, also inside of `{"headers": …}`.
    pub(super) fn json_headers(&mut self, number: u64, rest: &str, out: Out<'_>) {
        let Some(map) = json_object(rest.trim()) else {
            return self.problem(
                number,
                PlaylistProblemKind::BadHeader,
                "#EXTHTTP is not a JSON object",
                out,
            );
        };
        let inner = map.get("headers").and_then(serde_json::Value::as_object);
        let outer = map.iter().filter(|it| inner.is_none() || it.0 != "headers");
        for (name, value) in outer.chain(inner.into_iter().flatten()) {
            match value {
                serde_json::Value::String(value) => self.named_header(number, name, value, out),
                serde_json::Value::Number(value) => self.named_header(number, name, &value.to_string(), out),
                _ => self.problem(
                    number,
                    PlaylistProblemKind::BadHeader,
                    "a header in #EXTHTTP is not a text",
                    out,
                ),
            }
        }
    }

    /// `User-Agent=…&Referer=…` behind an address.
    pub(super) fn address_options(&mut self, number: u64, list: &str, out: Out<'_>) {
        for_each_option(list, |name, value| self.option(number, OptionForm::Pipe, name, &value, out));
    }

    /// The same in a property of Kodi, which contains headers only.
    fn header_list(&mut self, number: u64, list: &str, out: Out<'_>) {
        for_each_option(list, |name, value| self.named_header(number, name, &value, out));
    }

    fn option(&mut self, number: u64, form: OptionForm, name: &str, value: &str, out: Out<'_>) {
        match meaning(name) {
            Some(OptionMeaning::Header(header)) => self.request_header(number, header, value, out),
            Some(OptionMeaning::HeaderLines) => {
                for_each_header_line(value, |name, value| self.named_header(number, name, value, out));
            }
            Some(OptionMeaning::HeaderList) => self.header_list(number, value, out),
            // Behind an address, an unknown name is that of a header.
            None if form == OptionForm::Pipe => self.request_header(number, name, value, out),
            Some(OptionMeaning::Player) | None => self.keep_option(number, form, name, value, out),
        }
    }

    fn keep_option(&mut self, number: u64, form: OptionForm, name: &str, value: &str, out: Out<'_>) {
        let (name, value) = (text::clean(name), text::clean(value));
        if name.is_empty() || value.is_empty() {
            return;
        }
        let is_short = name.len() <= 200 && value.len() <= self.limits.url_bytes_max;
        if !is_short || self.draft.options.len() >= PLAYER_OPTIONS_MAX {
            let text = "an option for players is too long, or there are too many";
            return self.problem(number, PlaylistProblemKind::BadOption, text, out);
        }
        let options = &mut self.draft.options;
        // The last one counts, as in players.
        options.retain(|it| (it.form, it.name.as_str()) != (form, name.as_str()));
        options.push(PlayerOption { form, name, value });
    }

    /// Sets a header under its usual name.
    fn named_header(&mut self, number: u64, name: &str, value: &str, out: Out<'_>) {
        match meaning(name) {
            Some(OptionMeaning::Header(header)) => self.request_header(number, header, value, out),
            _ => self.request_header(number, name, value, out),
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

/// Reads a JSON object, also one with the quotes of Python: `{'User-Agent': 'Box'}`.
fn json_object(text: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    let with_single_quotes = || {
        let is_replaceable = !text.contains(['"', '\\']);
        is_replaceable.then(|| serde_json::from_str(&text.replace('\'', "\"")).ok())?
    };
    serde_json::from_str(text).ok().or_else(with_single_quotes)
}
