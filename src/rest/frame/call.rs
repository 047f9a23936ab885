//! One request on its way through a handler: who calls, what for, and what the gateway has to answer it with.

use std::sync::Arc;

use domain::account::Account;
use domain::channel::Channel;
use domain::group::Group;
use domain::setting::CoreSetting;
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use domain::user::User;
use http::HeaderMap;
use storage::{Record, Write};
use uuid::Uuid;

use super::input::Query;
use crate::app::App;
use crate::http::caller::Caller;
use crate::http::reply::Refusal;

/// What every handler is given.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    pub(crate) headers: HeaderMap,
    pub(super) user: Option<Arc<User>>,
    pub(super) parameters: Vec<(&'static str, Parameter)>,
    /// As it was asked for.
    pub(super) path: String,
    pub(super) query: Arc<Query>,
}

/// A parameter of the path, of the type that its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// The number of a record.
    Id(u32),
    Uuid(Uuid),
}

impl Parameter {
    /// `None`: this is no such parameter, and the path leads nowhere. Signs, points and numbers that no record can have
    /// are none.
    pub(super) fn read(name: &str, text: &str) -> Option<Self> {
        match name {
            "uuid" => Uuid::try_parse(text).ok().map(Self::Uuid),
            _ => text.parse().ok().filter(|_| text.bytes().all(|it| it.is_ascii_digit())).map(Self::Id),
        }
    }
}

impl Call {
    /// Who calls. Never missing where the route asks for a level.
    pub(crate) fn user(&self) -> Result<&Arc<User>, Refusal> {
        self.user.as_ref().ok_or_else(Refusal::no_credentials)
    }

    /// The number `{id}` in the path.
    pub(crate) fn id(&self) -> Result<u32, Refusal> {
        self.id_of("id")
    }

    /// The number of this name in the path. A route whose path has none is a bug, and answered as one.
    pub(crate) fn id_of(&self, name: &str) -> Result<u32, Refusal> {
        match self.parameter(name) {
            Some(Parameter::Id(id)) => Ok(id),
            _ => Err(Refusal::fault(format_args!("find the number {name} in {}", self.path))),
        }
    }

    /// The uuid in the path.
    pub(crate) fn uuid(&self) -> Result<Uuid, Refusal> {
        match self.parameter("uuid") {
            Some(Parameter::Uuid(uuid)) => Ok(uuid),
            _ => Err(Refusal::fault(format_args!("find the uuid in {}", self.path))),
        }
    }

    fn parameter(&self, name: &str) -> Option<Parameter> {
        self.parameters.iter().find(|it| it.0 == name).map(|it| it.1)
    }

    /// Runs a function as one write: all of it lands, or nothing does when it refuses.
    pub(crate) async fn write<R, F>(&self, fill: F) -> Result<R, Refusal>
    where
        F: FnOnce(&mut Write<'_>) -> Result<R, Refusal> + Send + 'static,
        R: Send + 'static,
    {
        self.app.models.store.write(fill).await
    }

    /// The address of another page of what was asked for, on the host that the caller used.
    pub(super) fn url_of_page(&self, page: usize) -> String {
        let url = format!("http://{}{}?", self.caller.host, self.path);
        let others = self.query.pairs().iter().filter(|it| it.0 != "page");
        let pairs = others.map(|it| (it.0.as_str(), it.1.as_str()));
        let page = page.to_string();
        let all = pairs.chain([("page", page.as_str())]);
        url + &url::form_urlencoded::Serializer::new(String::new()).extend_pairs(all).finish()
    }
}

/// The record of this id, for a write that changes or removes it.
pub(crate) fn find<T: Record + Noun>(write: &Write<'_>, id: u32) -> Result<T, Refusal> {
    write.get(id)?.ok_or_else(Refusal::unknown::<T>)
}

/// What a record is called where it is missing.
pub(crate) trait Noun {
    const NOUN: &'static str;
}

macro_rules! nouns {
    ($($type:ty = $noun:literal),+ $(,)?) => {
        $(impl Noun for $type { const NOUN: &'static str = $noun; })+
    };
}

nouns! {
    Account = "M3UAccount",
    Channel = "Channel",
    Group = "ChannelGroup",
    CoreSetting = "CoreSettings",
    Stream = "Stream",
    StreamProfile = "StreamProfile",
    User = "User",
}
