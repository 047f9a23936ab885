//! Creates, changes and deletes streams.

use actors::now_ms;
use domain::account::CUSTOM_ACCOUNT;
use domain::group::Group;
use domain::ids::{StreamId, StreamProfileId};
use domain::logo::Logo;
use domain::portal::PortalStreamAddress;
use domain::source_url::SourceUrl;
use domain::stream::{RequestHeaders, Stream, StreamProperties};
use domain::stream_profile::StreamProfile;
use resource_derive::Body;
use route_frame::value::WebUrl;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;

use crate::api::channels::logos::LogoRef;
use crate::api::channels::values::{GroupRef, StreamUrl, Text, find_group, no_such, no_such_group};
use crate::api::m3u::headers_of;
use crate::record::{set, set_text};

/// Maximum length of the name of a stream that a client sets, in characters.
const NAME_CHARS_MAX: usize = 512;
/// Maximum length of a guide id, in characters.
pub(in crate::api::channels) const TVG_ID_CHARS_MAX: usize = 255;

/// A stream that an admin adds.
#[derive(Clone, Debug, Body)]
pub(crate) struct NewStream {
    /// Name of the stream.
    #[field(chars_max = NAME_CHARS_MAX, example = "News HD")]
    name: Text,
    /// URL of the stream. Files of the gateway are not allowed.
    #[field(example = "http://provider.example/live/7.ts")]
    url: StreamUrl,
    /// Id in the guide.
    #[field(blank, chars_max = TVG_ID_CHARS_MAX)]
    tvg_id: Option<Option<Text>>,
    /// Group, by id or name. The name need not belong to a channel group.
    #[field(aliases = &["channel_group_id"], example = "3")]
    channel_group: Option<Option<GroupRef>>,
    /// URL of the logo.
    #[field(blank)]
    logo_url: Option<Option<WebUrl>>,
    /// Logo, by id or by address. Has priority over `logo_url`.
    #[field(blank)]
    logo: Option<Option<LogoRef>>,
    /// Stream profile; by default that of the channel.
    #[field(aliases = &["stream_profile"])]
    stream_profile_id: Option<Option<StreamProfileId>>,
    /// Number of the programme to play, where the URL leads to several. By default the one that the URL names with
    /// `#program=N` at its end, else the first with a picture.
    #[field(at_least = 1, at_most = 65535, example = "2")]
    program_number: Option<Option<u16>>,
    /// Whether another stream of the channel plays when the picture of this one stands still. By default it does not, because
    /// a cover of a radio station and a provider without a programme look the same.
    leave_still_picture: Option<bool>,
    /// User agent of requests for the stream; by default that of the account.
    #[field(blank, chars_max = 512, example = "VLC/3.0.20")]
    user_agent: Option<Option<Text>>,
    /// Other headers of requests for the stream.
    headers: Option<Option<Map<String, Value>>>,
}

/// Changes to a stream. For a stream from a playlist the values override those of the provider until `null` removes
/// them. For a stream that an admin added they replace the values.
#[derive(Clone, Debug, Body)]
pub(crate) struct StreamEdit {
    /// Name of the stream.
    #[field(chars_max = NAME_CHARS_MAX, example = "News HD")]
    name: Option<Option<Text>>,
    /// URL of the stream. Files of the gateway are not allowed.
    #[field(example = "http://provider.example/live/7.ts")]
    url: Option<Option<StreamUrl>>,
    /// Id in the guide; an empty text removes it.
    #[field(blank, chars_max = TVG_ID_CHARS_MAX)]
    tvg_id: Option<Option<Text>>,
    /// Group, by id or name. The name need not belong to a channel group.
    #[field(aliases = &["channel_group_id"], example = "3")]
    channel_group: Option<Option<GroupRef>>,
    /// URL of the logo; an empty text removes it.
    #[field(blank)]
    logo_url: Option<Option<WebUrl>>,
    /// Logo, by id or by address. Has priority over `logo_url`.
    #[field(blank)]
    logo: Option<Option<LogoRef>>,
    /// Stream profile; `null` selects that of the channel.
    #[field(aliases = &["stream_profile"])]
    stream_profile_id: Option<Option<StreamProfileId>>,
    /// Number of the programme to play, where the URL leads to several; `null` selects the one that the URL names, else
    /// the first with a picture.
    #[field(at_least = 1, at_most = 65535, example = "2")]
    program_number: Option<Option<u16>>,
    /// Whether another stream of the channel plays when the picture of this one stands still.
    leave_still_picture: Option<bool>,
    /// User agent of requests for the stream; `null` selects that of the playlist, else of the account.
    #[field(blank, chars_max = 512, example = "VLC/3.0.20")]
    user_agent: Option<Option<Text>>,
    /// Other headers of requests for the stream. They replace all that were set before, and those of the playlist with the
    /// same names.
    headers: Option<Option<Map<String, Value>>>,
}

/// The records that an edit refers to.
struct References {
    group: Option<Option<String>>,
    profile: Option<Option<StreamProfileId>>,
    /// The address.
    logo: Option<Option<String>>,
}

impl References {
    fn find(
        write: &Write<'_>,
        group: Option<Option<GroupRef>>,
        profile: Option<Option<StreamProfileId>>,
        (logo, logo_url): (Sent<LogoRef>, Sent<WebUrl>),
    ) -> Result<Self, Refusal> {
        let mut errors = FieldErrors::default();
        let logo = match logo {
            Some(Some(LogoRef::Id(id))) => {
                let found = write.get::<Logo>(id.0)?;
                if found.is_none() {
                    errors.add("logo", no_such(id));
                }
                Some(found.map(|it| it.url))
            }
            Some(Some(LogoRef::Address(url))) => Some(Some(url)),
            Some(None) => Some(None),
            None => logo_url.map(|it| it.map(|it| it.0)),
        };
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
        Ok(errors.or(Self { group, profile, logo })?)
    }
}

impl NewStream {
    pub(super) fn create(self, write: &mut Write<'_>) -> Result<Stream, Refusal> {
        let logo = (self.logo, self.logo_url);
        let found = References::find(write, self.channel_group, self.stream_profile_id, logo)?;
        let facts = StreamProperties {
            tvg_id: non_empty(self.tvg_id.flatten().map(|it| it.0)),
            group: found.group.flatten(),
            logo: non_empty(found.logo.flatten()),
            ..StreamProperties::new(self.name.0, self.url.0)
        };
        let id = StreamId(write.next_id::<Stream>()?);
        let mut stream = Stream::new(id, CUSTOM_ACCOUNT, facts, now_ms());
        stream.stream_profile = found.profile.flatten();
        stream.program = self.program_number.flatten();
        stream.leaves_still_picture = self.leave_still_picture.unwrap_or_default();
        set_headers(&mut stream, self.user_agent, self.headers)?;
        write.put(&stream)?;
        Ok(stream)
    }
}

impl StreamEdit {
    /// Applies the edit. Writes the stream only if it changed.
    pub(super) fn apply(self, write: &mut Write<'_>, stream: Stream) -> Result<Stream, Refusal> {
        let logo = (self.logo, self.logo_url);
        let References { group, profile, logo } =
            References::find(write, self.channel_group, self.stream_profile_id, logo)?;
        let before = stream.clone();
        let mut stream = stream;
        let name = self.name.map(|it| it.map(|it| it.0));
        let url = self.url.map(|it| it.map(|it| it.0));
        let tvg_id = self.tvg_id.map(|it| it.map(|it| it.0));
        match stream.account == CUSTOM_ACCOUNT {
            true => replace(&mut stream.provider, name, url, tvg_id, group, logo)?,
            false => {
                override_name(&mut stream, name);
                override_url(&mut stream, url);
                override_text(&mut stream, tvg_id, |it| &mut it.manual.tvg_id, Stream::tvg_id);
                override_text(&mut stream, group, |it| &mut it.manual.group, Stream::group);
                override_text(&mut stream, logo, |it| &mut it.manual.logo, Stream::logo);
            }
        }
        // A page has this profile without being given one.
        let implied = stream.profile_of_page().filter(|_| stream.stream_profile.is_none());
        set(&mut stream.stream_profile, profile.filter(|it| implied.is_none() || *it != implied));
        set_headers(&mut stream, self.user_agent, self.headers)?;
        set(&mut stream.program, self.program_number);
        if let Some(leaves) = self.leave_still_picture {
            stream.leaves_still_picture = leaves;
        }
        if stream != before {
            stream.updated_at = now_ms();
            write.put(&stream)?;
        }
        Ok(stream)
    }
}

/// Sets the headers of an admin. A value that the playlist has as well is not an override.
fn set_headers(
    stream: &mut Stream,
    user_agent: Sent<Text>,
    headers: Option<Option<Map<String, Value>>>,
) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    let is_custom = stream.account == CUSTOM_ACCOUNT;
    let listed = if is_custom { RequestHeaders::default() } else { stream.provider.headers.clone() };
    let own = if is_custom { &mut stream.provider.headers } else { &mut stream.manual.headers };
    if let Some(agent) = user_agent.map(|it| non_empty(it.map(|it| it.0))) {
        if agent.as_ref().is_some_and(|it| !RequestHeaders::default().set("User-Agent", it)) {
            errors.add("user_agent", "This is not a valid header value.");
        }
        own.user_agent = agent.filter(|it| Some(it) != listed.user_agent.as_ref());
    }
    if let Some(headers) = headers {
        let sent = headers_of(headers.unwrap_or_default(), &mut errors);
        own.referrer = sent.referrer.filter(|it| Some(it) != listed.referrer.as_ref());
        own.extra = sent.extra.into_iter().filter(|it| !listed.extra.contains(it)).collect();
    }
    errors.or(())
}

/// A field that can be absent and can be `null`.
type Sent<T> = Option<Option<T>>;

/// Replaces the values of a stream that an admin added.
fn replace(
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
        set_text(fact, sent);
    }
    errors.or(())
}

/// Treats an empty text as absent.
fn non_empty(text: Option<String>) -> Option<String> {
    text.filter(|it| !it.is_empty())
}

// An edit with the value that already applies is not an override. Otherwise a client that sends back a whole object would
// freeze the provider's current values.

fn override_name(stream: &mut Stream, sent: Sent<String>) {
    if let Some(name) = sent {
        stream.manual.name = None;
        stream.manual.name = name.filter(|it| it != stream.name());
    }
}

fn override_url(stream: &mut Stream, sent: Sent<SourceUrl>) {
    if let Some(url) = sent {
        stream.manual.url = None;
        // The address of a portal is shown without its command, and cannot be entered.
        stream.manual.url = url.filter(|it| it != stream.url() && !PortalStreamAddress::is_one(it));
    }
}

fn override_text(
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
