//! Streams of the other service, which are read and written one by one because there are so many.

use domain::channel::ChannelNumber;
use domain::ids::{AccountId, StreamId};
use domain::playlist::content;
use domain::source_url::SourceUrl;
use domain::stream::{RequestHeaders, Stream, StreamProperties};
use serde::{Deserialize, Serialize};

use super::plan::Foundation;
use super::row::{SourceRow, plain};

/// Maximum length of a stream's name, in characters.
const NAME_CHARS_MAX: usize = 512;
/// Maximum length of a guide id, in characters.
pub(crate) const TVG_ID_CHARS_MAX: usize = 255;
/// Maximum length of an address, in bytes.
pub(crate) const URL_BYTES_MAX: usize = 8 * 1024;
/// The name of a stream without one.
const UNNAMED: &str = "unnamed";

/// A stream as the other service has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceStream {
    pub id: u32,
    /// `None` for a manually created stream.
    pub account: Option<u32>,
    pub name: String,
    pub url: SourceUrl,
    tvg_id: Option<String>,
    logo: Option<String>,
    group: Option<u32>,
    number: Option<ChannelNumber>,
    is_adult: bool,
    stream_profile: Option<u32>,
    /// When a stale stream was last seen, in milliseconds since 1970; 0 if that is unknown.
    stale_since: Option<i64>,
    /// Milliseconds since 1970.
    updated_at: i64,
}

impl SourceStream {
    /// Reads a row.
    ///
    /// # Errors
    /// The reason why the stream cannot be taken.
    pub fn read(row: &SourceRow) -> Result<Self, &'static str> {
        let id = row.id("id").ok_or("its id is missing or too large")?;
        let url = row.text("url").map(str::trim).filter(|it| !it.is_empty());
        let url = url.ok_or("it has no address; streams from uploaded files cannot be taken")?;
        if url.len() > URL_BYTES_MAX {
            return Err("its address is too long");
        }
        if url.contains(char::is_control) {
            return Err("its address contains control characters");
        }
        let name = plain(row.text("name").unwrap_or_default(), NAME_CHARS_MAX);
        let is_stale = row.flag("is_stale") == Some(true);
        Ok(Self {
            id,
            account: row.first_id(["m3u_account_id", "m3u_account"]),
            name: if name.is_empty() { UNNAMED.to_owned() } else { name },
            url: SourceUrl::new(url),
            tvg_id: row.text("tvg_id").map(|it| plain(it, TVG_ID_CHARS_MAX)).filter(|it| !it.is_empty()),
            logo: row.text("logo_url").and_then(web_address),
            group: row.first_id(["channel_group_id", "channel_group"]),
            number: row.number("stream_chno").and_then(|it| it.parse().ok()),
            is_adult: row.flag("is_adult") == Some(true),
            stream_profile: row.id("stream_profile_id"),
            stale_since: is_stale.then(|| row.time_ms("last_seen").unwrap_or_default()),
            updated_at: row.time_ms("updated_at").unwrap_or_default(),
        })
    }

    /// Returns the stream under this id, for this account. `nth` is its position among the streams of the account with
    /// the same address.
    pub fn into_stream(self, id: StreamId, account: AccountId, nth: u32, foundation: &Foundation) -> Stream {
        let group = self.group.and_then(|it| foundation.group_name(it)).map(str::to_owned);
        let provider = StreamProperties {
            content: content::from_values(&self.name, &self.url, group.as_deref(), None),
            name: self.name,
            url: self.url,
            headers: RequestHeaders::default(),
            tvg_id: self.tvg_id,
            group,
            logo: self.logo,
            number: self.number,
            // The next refresh finds it.
            archive: None,
            is_adult: self.is_adult,
            guide_offset: 0,
            details: None,
        };
        let mut stream = Stream::new(id, account, provider, self.updated_at);
        stream.nth = nth;
        stream.stream_profile = self.stream_profile.and_then(|it| foundation.stream_profile(it));
        stream.last_seen = self.stale_since;
        stream
    }
}

/// Returns an http or https address of a picture.
pub(crate) fn web_address(text: &str) -> Option<String> {
    let text = text.trim();
    let is_web = SourceUrl::new(text).is_http() && text.len() <= URL_BYTES_MAX;
    (is_web && !text.contains(char::is_control)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::SourceTable;

    fn read(values: &[(&str, Value)]) -> Result<SourceStream, &'static str> {
        SourceStream::read(&SourceRow::new(SourceTable::Streams, values.iter().cloned()))
    }

    #[test]
    fn a_stream_of_an_export_is_read() {
        let stream = read(&[
            ("id", json!("9")),
            ("name", json!("News\u{7} HD")),
            ("url", json!("http://p.example/live/u/p/9.ts")),
            ("m3u_account_id", json!("2")),
            ("stream_chno", json!("2.1")),
            ("is_adult", json!("t")),
            ("is_stale", json!("t")),
            ("last_seen", json!("1970-01-01 00:00:01+00")),
            ("logo_url", json!("/data/logos/9.png")),
        ])
        .unwrap();
        assert_eq!((stream.id, stream.account, stream.name.as_str()), (9, Some(2), "News  HD"));
        assert_eq!((stream.number, stream.stale_since, stream.logo), ("2.1".parse().ok(), Some(1000), None));
        assert!(stream.is_adult);
    }

    #[test]
    fn a_stream_that_cannot_play_is_refused_with_the_reason() {
        let long = format!("http://h/{}", "a".repeat(URL_BYTES_MAX));
        for (values, part) in [
            (vec![("url", json!("http://h/1"))], "id"),
            (vec![("id", json!(1))], "no address"),
            (vec![("id", json!(1)), ("url", json!("  "))], "no address"),
            (vec![("id", json!(1)), ("url", json!(long))], "too long"),
            (vec![("id", json!(1)), ("url", json!("http://h/\r\n"))], "no such"),
            (vec![("id", json!(1)), ("url", json!("http://h/\r\nx"))], "control"),
        ] {
            match read(&values) {
                Err(reason) => assert!(reason.contains(part), "{reason}"),
                Ok(stream) => assert_eq!((stream.url.expose(), part), ("http://h/", "no such")),
            }
        }
    }
}
