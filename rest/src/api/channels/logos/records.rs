//! Creates, changes and deletes logos, together with the channels that use them.

use actors::now_ms;
use domain::channel::Channel;
use domain::ids::{AccountId, GuideSourceId, LogoId};
use domain::logo::{LOGO_NAME_CHARS_MAX, LOGO_URL_CHARS_MAX, Logo};
use route_frame::field::{Field, Kind};
use route_frame::value::{Readable, Shape, WebUrl};
use serde::{Serialize, Serializer};
use serde_json::Value;
use server::reply::Refusal;
use storage::Write;

use crate::api::channels::channels::numbers::{Changes, put_all};
use crate::api::channels::undo::UndoLog;
use crate::record::{find, set};

pub(super) const LIST: &str = "/api/channels/logos/";

/// The URL of a logo: a web address, or the path of an uploaded logo as the gateway shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::api::channels) struct LogoUrl(pub(in crate::api::channels) String);

impl Shape for LogoUrl {
    const KIND: Kind = Kind::Text;
}

impl Readable for LogoUrl {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        let is_path = value.as_str().is_some_and(|it| it.starts_with(LIST));
        match is_path {
            true => String::read(value, field).map(Self),
            false => WebUrl::read(value, field).map(|it| Self(it.0)),
        }
    }
}

/// A logo, by its id or its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::api::channels) enum LogoRef {
    Id(LogoId),
    Address(String),
}

impl Shape for LogoRef {
    const KIND: Kind = Kind::Either(&[Kind::Integer, Kind::Text]);
}

impl Readable for LogoRef {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        match value {
            Value::String(_) => LogoUrl::read(value, field).map(|it| Self::Address(it.0)),
            _ => LogoId::read(value, field).map(Self::Id),
        }
    }
}

impl Serialize for LogoUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl LogoUrl {
    /// Returns a web address. Only an upload gives a logo a path of the gateway.
    pub(super) fn into_web_url(self) -> Result<String, Refusal> {
        if self.0.starts_with('/') { Err(Refusal::field("url", "Enter a valid URL.")) } else { Ok(self.0) }
    }
}

/// The origin of a logo's address, which decides where the address may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api::channels) enum NamedBy {
    Admin,
    /// The playlist of an account.
    Account(AccountId),
    Guide(GuideSourceId),
}

impl NamedBy {
    fn account(self) -> Option<AccountId> {
        if let Self::Account(id) = self { Some(id) } else { None }
    }

    fn guide_source(self) -> Option<GuideSourceId> {
        if let Self::Guide(id) = self { Some(id) } else { None }
    }
}

/// Returns the logo with this address. Creates it if there is none, and notes it. Returns `None` for other texts
/// than web addresses, which playlists can contain.
pub(in crate::api::channels) fn logo_of_address(
    write: &mut Write<'_>,
    url: &str,
    name: &str,
    named_by: NamedBy,
    log: &mut UndoLog,
) -> Result<Option<Logo>, Refusal> {
    if let Some(logo) = write.by::<Logo>("url", url)?.into_iter().next() {
        return Ok(Some(logo));
    }
    let is_web =
        url::Url::parse(url).is_ok_and(|it| matches!(it.scheme(), "http" | "https") && it.has_host());
    if !is_web || url.chars().count() > LOGO_URL_CHARS_MAX {
        return Ok(None);
    }
    let logo = Logo {
        id: LogoId(write.next_id::<Logo>()?),
        name: name.chars().take(LOGO_NAME_CHARS_MAX).collect(),
        url: url.to_owned(),
        file: None,
        named_by: named_by.account(),
        guide_source: named_by.guide_source(),
        updated_at: now_ms(),
    };
    write.put(&logo)?;
    log.logo_created(&logo);
    Ok(Some(logo))
}

/// Changes a logo, and its address in the channels that use it.
pub(super) fn change_logo(
    write: &mut Write<'_>,
    id: u32,
    name: Option<String>,
    url: Option<LogoUrl>,
) -> Result<Logo, Refusal> {
    let before = find::<Logo>(write, id)?;
    let mut logo = before.clone();
    set(&mut logo.name, name);
    if let Some(url) = url.filter(|it| it.0 != before.url) {
        logo.url = url.into_web_url()?;
        (logo.file, logo.named_by, logo.guide_source) = (None, None, None);
    }
    if logo == before {
        return Ok(logo);
    }
    logo.updated_at = now_ms();
    write.put(&logo)?;
    if logo.url != before.url {
        let with_url = |it: Channel| (it.clone(), Channel { logo: Some(logo.url.clone()), ..it });
        let changes: Changes = users(write, logo.id)?.into_iter().map(with_url).collect();
        put_all(write, changes, &mut UndoLog::default())?;
    }
    Ok(logo)
}

/// Deletes a logo, and removes it from its channels.
pub(super) fn delete_logo(write: &mut Write<'_>, id: u32, log: &mut UndoLog) -> Result<Logo, Refusal> {
    let logo = find::<Logo>(write, id)?;
    let without = |it: Channel| (it.clone(), Channel { logo: None, logo_id: None, ..it });
    let changes: Changes = users(write, logo.id)?.into_iter().map(without).collect();
    put_all(write, changes, log)?;
    write.remove::<Logo>(id)?;
    log.logo_deleted(logo.clone());
    Ok(logo)
}

fn users(write: &Write<'_>, id: LogoId) -> Result<Vec<Channel>, Refusal> {
    Ok(write.by::<Channel>("logo", id.0.to_be_bytes())?)
}
