//! One request on its way through a handler: the caller, the parameters, and access to the gateway.

use std::sync::Arc;

use domain::user::User;
use http::HeaderMap;
use storage::Write;
use url::form_urlencoded::Serializer;
use uuid::Uuid;

use super::input::Query;
use crate::app::App;
use crate::http::caller::Caller;
use crate::http::reply::Refusal;

/// The first argument of every handler.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    pub(crate) headers: HeaderMap,
    pub(super) user: Option<Arc<User>>,
    pub(super) parameters: Vec<(&'static str, Parameter)>,
    /// Path as requested.
    pub(super) path: String,
    pub(super) query: Arc<Query>,
}

/// A parameter of the path. Its name determines its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// Id of a record.
    Id(u32),
    /// `{uuid}`.
    Uuid(Uuid),
}

impl Parameter {
    /// Returns `None` if the text does not fit, so that the path does not exist. Ids have no sign, decimals or more
    /// than 32 bits.
    pub(super) fn read(name: &str, text: &str) -> Option<Self> {
        match name {
            "uuid" => Uuid::try_parse(text).ok().map(Self::Uuid),
            _ => text.parse().ok().filter(|_| text.bytes().all(|it| it.is_ascii_digit())).map(Self::Id),
        }
    }
}

impl Call {
    /// Returns the authenticated user. Always present if the route requires a level.
    pub(crate) fn user(&self) -> Result<&Arc<User>, Refusal> {
        self.user.as_ref().ok_or_else(Refusal::no_credentials)
    }

    /// Returns the parameter `{id}`.
    pub(crate) fn id(&self) -> Result<u32, Refusal> {
        self.id_of("id")
    }

    /// Returns the id with this parameter name. A route whose path lacks it is a bug, and the answer is 500.
    pub(crate) fn id_of(&self, name: &str) -> Result<u32, Refusal> {
        match self.parameter(name) {
            Some(Parameter::Id(id)) => Ok(id),
            _ => Err(Refusal::fault(format_args!("find the number {name} in {}", self.path))),
        }
    }

    /// Returns the parameter `{uuid}`.
    pub(crate) fn uuid(&self) -> Result<Uuid, Refusal> {
        match self.parameter("uuid") {
            Some(Parameter::Uuid(uuid)) => Ok(uuid),
            _ => Err(Refusal::fault(format_args!("find the uuid in {}", self.path))),
        }
    }

    fn parameter(&self, name: &str) -> Option<Parameter> {
        self.parameters.iter().find(|it| it.0 == name).map(|it| it.1)
    }

    /// Runs a function as one transaction: a refusal discards all of its changes.
    pub(crate) async fn write<R, F>(&self, fill: F) -> Result<R, Refusal>
    where
        F: FnOnce(&mut Write<'_>) -> Result<R, Refusal> + Send + 'static,
        R: Send + 'static,
    {
        self.app.models.store.write(fill).await
    }

    /// Returns the URL of another page of the same list, on the host that the client used.
    pub(super) fn url_of_page(&self, page: usize) -> String {
        let url = format!("http://{}{}?", self.caller.host, self.path);
        let others = self.query.pairs().iter().filter(|it| it.0 != "page");
        let pairs = others.map(|it| (it.0.as_str(), it.1.as_str()));
        let page = page.to_string();
        let all = pairs.chain([("page", page.as_str())]);
        url + &Serializer::new(String::new()).extend_pairs(all).finish()
    }
}
