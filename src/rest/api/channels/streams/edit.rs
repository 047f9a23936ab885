//! How a stream is made, changed and deleted.

use std::collections::BTreeSet;

use actors::now_ms;
use domain::account::{CUSTOM_ACCOUNT, RefreshRecord};
use domain::channel::Channel;
use domain::group::Group;
use domain::ids::{StreamId, StreamProfileId};
use domain::source_url::SourceUrl;
use domain::stream::{RequestHeaders, Stream, StreamProperties};
use domain::stream_profile::StreamProfile;
use storage::Write;

use crate::http::reply::Refusal;
use crate::rest::api::channels::values::{GroupRef, StreamUrl, Text, find_group, no_such, no_such_group};
use crate::rest::frame::input::FieldErrors;
use crate::rest::frame::record::body;
use crate::rest::frame::value::WebUrl;

/// Characters that the name of a stream may have, when it comes from a person.
const NAME_CHARS_MAX: usize = 512;
/// Characters of an id in a guide.
pub(in crate::rest::api::channels) const TVG_ID_CHARS_MAX: usize = 255;

body! {
    /// A stream that is made by hand.
    NewStream {
        /// Its name.
        name: Text [required(), chars_max(NAME_CHARS_MAX), example("News HD")],
        /// Where it is. Not a file of the gateway.
        url: StreamUrl [required(), example("http://provider.example/live/7.ts")],
        /// Its id in a guide.
        tvg_id: Option<Text> [blank(), chars_max(TVG_ID_CHARS_MAX)],
        /// Its group: an id, or a name that need not be that of a channel group.
        channel_group: Option<GroupRef> [example("3")],
        /// Address of a picture.
        logo_url: Option<WebUrl> [blank()],
        /// How it is handed on, where that is not left to the channel.
        stream_profile_id: Option<StreamProfileId>,
    }
}

body! {
    /// What changes of a stream. Of one from a playlist, what is sent counts in place of what the provider says, until
    /// `null` takes it back. Of one made by hand, it is what the stream is.
    StreamEdit {
        /// Its name.
        name: Option<Text> [chars_max(NAME_CHARS_MAX), example("News HD")],
        /// Where it is. Not a file of the gateway.
        url: Option<StreamUrl> [example("http://provider.example/live/7.ts")],
        /// Its id in a guide; an empty text is none.
        tvg_id: Option<Text> [blank(), chars_max(TVG_ID_CHARS_MAX)],
        /// Its group: an id, or a name that need not be that of a channel group.
        channel_group: Option<GroupRef> [example("3")],
        /// Address of a picture; an empty text is none.
        logo_url: Option<WebUrl> [blank()],
        /// How it is handed on; `null` leaves it to the channel.
        stream_profile_id: Option<StreamProfileId>,
    }
}

/// What is sent, with what it refers to looked up.
struct Found {
    group: Option<Option<String>>,
    profile: Option<Option<StreamProfileId>>,
}

impl Found {
    fn of(
        write: &Write<'_>,
        group: Option<Option<GroupRef>>,
        profile: Option<Option<StreamProfileId>>,
    ) -> Result<Self, Refusal> {
        let mut errors = FieldErrors::default();
        if let Some(Some(id)) = profile
            && write.get::<StreamProfile>(id.0)?.is_none()
        {
            errors.add("stream_profile_id", no_such(id));
        }
        let group = match group {
            Some(Some(GroupRef::Name(name))) => Some(Some(name)),
            Some(Some(wanted)) => {
                let found = find_group(write, &wanted)?;
                if found.is_none() {
                    errors.add("channel_group", no_such_group(&wanted));
                }
                Some(found.map(|it: Group| it.name))
            }
            Some(None) => Some(None),
            None => None,
        };
        if errors.is_empty() { Ok(Self { group, profile }) } else { Err(errors.into()) }
    }
}

impl NewStream {
    pub(super) fn make(self, write: &mut Write<'_>) -> Result<Stream, Refusal> {
        let (Some(Text(name)), Some(StreamUrl(url))) = (self.name, self.url) else {
            return Err(Refusal::fault("read a new stream"));
        };
        let found = Found::of(write, self.channel_group, self.stream_profile_id)?;
        let facts = StreamProperties {
            name,
            url,
            headers: RequestHeaders::default(),
            tvg_id: some(self.tvg_id.flatten().map(|it| it.0)),
            group: found.group.flatten(),
            logo: some(self.logo_url.flatten().map(|it| it.0)),
            number: None,
        };
        let id = StreamId(write.next_id::<Stream>()?);
        let mut stream = Stream::new(id, CUSTOM_ACCOUNT, facts, now_ms());
        stream.stream_profile = found.profile.flatten();
        write.put(&stream)?;
        Ok(stream)
    }
}

impl StreamEdit {
    /// What was sent goes over what is there. A stream that it leaves as it was is not written.
    pub(super) fn apply(self, write: &mut Write<'_>, stream: Stream) -> Result<Stream, Refusal> {
        let Found { group, profile } = Found::of(write, self.channel_group, self.stream_profile_id)?;
        let before = stream.clone();
        let mut stream = stream;
        let name = self.name.map(|it| it.map(|it| it.0));
        let url = self.url.map(|it| it.map(|it| it.0));
        let tvg_id = self.tvg_id.map(|it| it.map(|it| it.0));
        let logo = self.logo_url.map(|it| it.map(|it| it.0));
        match stream.account == CUSTOM_ACCOUNT {
            true => state(&mut stream.provider, name, url, tvg_id, group, logo)?,
            false => {
                edit_name(&mut stream, name);
                edit_url(&mut stream, url);
                edit_text(&mut stream, tvg_id, |it| &mut it.manual.tvg_id, Stream::tvg_id);
                edit_text(&mut stream, group, |it| &mut it.manual.group, Stream::group);
                edit_text(&mut stream, logo, |it| &mut it.manual.logo, Stream::logo);
            }
        }
        stream.stream_profile = profile.unwrap_or(stream.stream_profile);
        if stream != before {
            stream.updated_at = now_ms();
            write.put(&stream)?;
        }
        Ok(stream)
    }
}

/// A field that may have been sent, and may have been `null`.
type Sent<T> = Option<Option<T>>;

/// Says what a stream made by hand is.
fn state(
    facts: &mut StreamProperties,
    name: Sent<String>,
    url: Sent<SourceUrl>,
    tvg_id: Sent<String>,
    group: Sent<String>,
    logo: Sent<String>,
) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    let null = "This field may not be null.";
    match name {
        Some(Some(name)) => facts.name = name,
        Some(None) => errors.add("name", null),
        None => {}
    }
    match url {
        Some(Some(url)) => facts.url = url,
        Some(None) => errors.add("url", null),
        None => {}
    }
    for (sent, fact) in [(tvg_id, &mut facts.tvg_id), (group, &mut facts.group), (logo, &mut facts.logo)] {
        if let Some(text) = sent {
            *fact = some(text);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// An empty text is none.
fn some(text: Option<String>) -> Option<String> {
    text.filter(|it| !it.is_empty())
}

// An edit that says what is said without it is none. Else a client that sends back all that it was shown would keep
// the provider's values of that day for ever.

fn edit_name(stream: &mut Stream, sent: Sent<String>) {
    if let Some(name) = sent {
        stream.manual.name = None;
        stream.manual.name = name.filter(|it| it != stream.name());
    }
}

fn edit_url(stream: &mut Stream, sent: Sent<SourceUrl>) {
    if let Some(url) = sent {
        stream.manual.url = None;
        stream.manual.url = url.filter(|it| it != stream.url());
    }
}

fn edit_text(
    stream: &mut Stream,
    sent: Sent<String>,
    place: impl Fn(&mut Stream) -> &mut Option<String>,
    in_force: impl Fn(&Stream) -> Option<&str>,
) {
    if let Some(text) = sent {
        *place(stream) = None;
        let text = text.filter(|it| Some(it.as_str()) != in_force(stream).or(Some("")));
        *place(stream) = text;
    }
}

/// Deletes these streams, and takes them out of the channels that use them. How many there were.
///
/// The list of an account that lost one is looked at again as a whole when it is refreshed, so that what the provider
/// still offers comes back.
pub(super) fn remove(write: &mut Write<'_>, ids: &[StreamId]) -> Result<usize, Refusal> {
    let mut n_removed = 0;
    let (mut channels, mut accounts) = (BTreeSet::new(), BTreeSet::new());
    for id in ids {
        let Some(stream) = write.get::<Stream>(id.0)? else { continue };
        write.remove::<Stream>(id.0)?;
        n_removed += 1;
        accounts.insert(stream.account);
        channels.extend(write.by::<Channel>("stream", id.0.to_be_bytes())?.iter().map(|it| it.id));
    }
    for id in channels {
        let Some(mut channel) = write.get::<Channel>(id.0)? else { continue };
        channel.streams.retain(|it| !ids.contains(it));
        channel.updated_at = now_ms();
        write.put(&channel)?;
    }
    for account in accounts {
        if let Some(refresh) = write.get::<RefreshRecord>(account.0)?.filter(|it| it.digest.is_some()) {
            write.put(&RefreshRecord { digest: None, ..refresh })?;
        }
    }
    Ok(n_removed)
}
