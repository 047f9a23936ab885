//! The form of the addresses of a panel's live streams.
//!
//! Imported streams have addresses that end with `.ts`. Some panels serve only addresses without an extension, or only
//! playlists of segments; the answer about a login often says so.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::playlist::delta::live_id;
use crate::source_url::SourceUrl;

/// The name of the value of `user_info` that lists the formats of a login.
pub(super) const ALLOWED_FORMATS: &str = "allowed_output_formats";

/// The end of the addresses of a panel's live streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveForm {
    /// `/live/user/password/ID.ts`, a transport stream.
    #[default]
    Ts,
    /// `/live/user/password/ID`, a transport stream.
    NoExtension,
    /// `/live/user/password/ID.m3u8`, a playlist of segments.
    M3u8,
}

/// Why a form is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LiveFormSource {
    /// An admin chose it.
    Setting,
    /// A stream played in this form after the panel did not serve another one.
    Found,
    /// The answer about the login names it.
    Login,
    /// Nothing is known.
    Default,
}

impl LiveForm {
    /// All forms, in the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::Ts, Self::NoExtension, Self::M3u8];

    /// Returns the form that the answer about a login names, from its `user_info`: `.ts` if it is allowed, otherwise
    /// `.m3u8`. `None` if neither is named.
    pub fn from_login(user_info: &Map<String, Value>) -> Option<Self> {
        let formats = user_info.get(ALLOWED_FORMATS)?;
        let items = formats.as_array().map_or(std::slice::from_ref(formats), Vec::as_slice);
        let texts = items.iter().filter_map(Value::as_str);
        // Some panels write one text for all, `m3u8,ts` or `["m3u8","ts"]`.
        let words = texts.flat_map(|it| it.split(|it: char| !it.is_ascii_alphanumeric()));
        let forms = words.filter_map(|it| match it.to_ascii_lowercase().as_str() {
            "ts" | "mpegts" => Some(Self::Ts),
            "m3u8" | "hls" => Some(Self::M3u8),
            _ => None,
        });
        forms.min_by_key(|it| *it == Self::M3u8)
    }

    /// Returns the form of the address of a live stream of a panel; `None` for any other address.
    pub fn from_url(url: &SourceUrl) -> Option<Self> {
        let id = live_id(url)?;
        let (_, last) = url.path().rsplit_once('/')?;
        let end = last.strip_prefix(id)?;
        Self::ALL.into_iter().find(|it| it.ending().eq_ignore_ascii_case(end))
    }

    /// Returns the address of a live stream of a panel in this form; `None` for any other address.
    pub fn applied_to(self, url: &SourceUrl) -> Option<SourceUrl> {
        let id = live_id(url)?;
        let text = url.expose();
        let (path, query) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
        let (folder, _) = path.rsplit_once('/')?;
        Some(SourceUrl::new(format!("{folder}/{id}{}{query}", self.ending())))
    }

    /// Returns the other forms, in the order in which they are tried.
    pub fn others(self) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |it| *it != self)
    }

    /// Returns the form in force for an account, and why: the setting of an admin, otherwise the form that was found,
    /// otherwise the one that the login names.
    pub fn in_force(
        setting: Option<Self>,
        found: Option<Self>,
        login: Option<Self>,
    ) -> (Self, LiveFormSource) {
        let from = |form: Option<Self>, source| form.map(|it| (it, source));
        from(setting, LiveFormSource::Setting)
            .or(from(found, LiveFormSource::Found))
            .or(from(login, LiveFormSource::Login))
            .unwrap_or((Self::default(), LiveFormSource::Default))
    }

    /// Returns what follows the id of a stream.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Ts => ".ts",
            Self::NoExtension => "",
            Self::M3u8 => ".m3u8",
        }
    }
}

impl fmt::Display for LiveForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ts => "the extension .ts",
            Self::NoExtension => "no extension",
            Self::M3u8 => "the extension .m3u8",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::panel::PanelAnswer;

    #[test]
    fn the_answer_about_a_login_names_the_form_of_its_panel() {
        use LiveForm::*;
        for (formats, expected) in [
            (json!(["m3u8", "ts", "rtmp"]), Some(Ts)),
            (json!(["ts"]), Some(Ts)),
            (json!(["m3u8"]), Some(M3u8)),
            (json!(["rtmp", "M3U8"]), Some(M3u8)),
            (json!([".m3u8"]), Some(M3u8)),
            (json!(["hls"]), Some(M3u8)),
            (json!({ "1": "m3u8", "3": "rtmp" }), Some(M3u8)),
            (json!({ "0": "m3u8", "1": "ts" }), Some(Ts)),
            (json!("m3u8,ts"), Some(Ts)),
            (json!("m3u8"), Some(M3u8)),
            (json!("[\"m3u8\",\"rtmp\"]"), Some(M3u8)),
            (json!(["rtmp"]), None),
            (json!([1, null, "m3u8"]), Some(M3u8)),
            (json!(["1", "2"]), None),
            (json!([]), None),
            (json!(""), None),
            (json!(1), None),
            (Value::Null, None),
        ] {
            let answer = json!({ "user_info": { "auth": 1, "allowed_output_formats": formats } });
            let read = PanelAnswer::read(answer.to_string().as_bytes()).unwrap();
            assert_eq!(LiveForm::from_login(&read.user_info), expected, "{formats}");
        }
        assert_eq!(LiveForm::from_login(&Map::new()), None);
    }

    #[test]
    fn a_form_changes_the_end_of_the_address_of_a_live_stream_of_a_panel_only() {
        use LiveForm::*;
        for (url, form, ends) in [
            ("http://h/live/u/p/7.ts", Some(Ts), ["7.ts", "7", "7.m3u8"]),
            ("http://h/live/u/p/7.TS", Some(Ts), ["7.ts", "7", "7.m3u8"]),
            ("http://h/live/u/p/7", Some(NoExtension), ["7.ts", "7", "7.m3u8"]),
            ("http://h/sub/live/u/p.a/7.m3u8", Some(M3u8), ["7.ts", "7", "7.m3u8"]),
            ("http://h/u/p/7", Some(NoExtension), ["7.ts", "7", "7.m3u8"]),
            ("http://u:p@h:81/live/u/p/7.flv", None, ["7.ts", "7", "7.m3u8"]),
        ] {
            let url = SourceUrl::new(url);
            assert_eq!(LiveForm::from_url(&url), form, "{}", url.expose());
            let (folder, _) = url.expose().rsplit_once('/').unwrap();
            for (form, end) in LiveForm::ALL.into_iter().zip(ends) {
                let changed = form.applied_to(&url).unwrap();
                assert_eq!(changed.expose(), format!("{folder}/{end}"));
                assert_eq!(LiveForm::from_url(&changed), Some(form));
            }
        }
        let with_query = SourceUrl::new("http://h/live/u/p/7.ts?token=a/b.ts#x");
        assert_eq!(
            NoExtension.applied_to(&with_query).unwrap().expose(),
            "http://h/live/u/p/7?token=a/b.ts#x"
        );
        for url in [
            "http://h/movie/u/p/7.ts",
            "http://h/series/u/p/7.mkv",
            "http://h/live/u/p/news.ts",
            "http://h/timeshift/u/p/60/2026-01-01:00-00/7.ts",
            "http://h/7.ts",
            "rtsp://h/live/u/p/7",
            "",
        ] {
            let url = SourceUrl::new(url);
            assert_eq!((LiveForm::from_url(&url), M3u8.applied_to(&url)), (None, None), "{}", url.expose());
        }
        assert_eq!(Ts.others().collect::<Vec<_>>(), [NoExtension, M3u8]);
        assert_eq!(M3u8.others().collect::<Vec<_>>(), [Ts, NoExtension]);
    }
}
