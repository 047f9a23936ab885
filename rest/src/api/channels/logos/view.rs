//! A logo in answers.

use std::sync::Arc;

use domain::channel::Channel;
use domain::ids::LogoId;
use domain::logo::{LOGO_NAME_CHARS_MAX, LOGO_URL_CHARS_MAX, Logo};
use resource_derive::View;
use route_frame::call::Call;
use serde::Serialize;
use server::reply::Refusal;
use services::addresses::without_credentials;
use services::logo_cache::logo_copy_address;
use storage::Table;

use super::records::LogoUrl;
use crate::context::RestCall;
use crate::record::{Lookup, Render};

/// A logo of channels.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewLogo, edit = LogoEdit)]
pub(crate) struct LogoView {
    /// Assigned by the gateway and never reused.
    #[field(example = "5")]
    id: LogoId,
    /// Name of the logo.
    #[field(required, chars_max = LOGO_NAME_CHARS_MAX, example = "News")]
    name: String,
    /// URL of the logo, unique. That of an uploaded logo is a path of the gateway. Users other than admins see no
    /// credentials in it.
    #[field(required, chars_max = LOGO_URL_CHARS_MAX, example = "http://provider.example/news.png")]
    url: LogoUrl,
    /// URL of the copy that the gateway serves, without credentials. Changes with the logo.
    cache_url: String,
    /// Number of channels that use the logo.
    #[field(example = "1")]
    channel_count: usize,
    /// Whether a channel uses the logo.
    is_used: bool,
    /// Names of channels that use the logo, at most 5.
    #[field(example = "[\"News\"]")]
    channel_names: Vec<String>,
    /// Whether the logo was uploaded.
    is_uploaded: bool,
}

/// Maximum number of names of channels in a logo.
const NAMES_MAX: usize = 5;

/// Data that views of logos depend on.
pub(crate) struct LogoLookup {
    origin: String,
    channels: Arc<Table<Channel>>,
    is_listed: Box<dyn Fn(&Channel) -> bool>,
    is_admin: bool,
}

impl Lookup for LogoLookup {
    fn load(call: &Call) -> Result<Self, Refusal> {
        Ok(Self {
            origin: call.origin(),
            channels: call.rest().models.channels.load(),
            is_listed: Box::new(call.listed()),
            is_admin: call.is_admin(),
        })
    }
}

impl Render for Logo {
    type View = LogoView;
    type Lookup = LogoLookup;

    fn view(&self, lookup: &LogoLookup) -> LogoView {
        let users = lookup.channels.by("logo", self.id.0.to_be_bytes());
        let (mut channel_count, mut channel_names) = (0, Vec::new());
        for channel in users.filter(|it| (lookup.is_listed)(it)) {
            channel_count += 1;
            if channel_names.len() < NAMES_MAX {
                channel_names.push(channel.name.clone());
            }
        }
        let url = if lookup.is_admin { self.url.clone() } else { without_credentials(&self.url) };
        LogoView {
            id: self.id,
            name: self.name.clone(),
            url: LogoUrl(url),
            cache_url: logo_copy_address(&lookup.origin, self),
            channel_count,
            is_used: channel_count > 0,
            channel_names,
            is_uploaded: self.file.is_some(),
        }
    }
}
