//! One request on its way through a handler: the caller, the parameters, and access to the gateway.

use std::fmt;
use std::sync::Arc;

use actors::{PluginCaller, now_ms, view_limits};
use config::NetworkClass;
use domain::audit::AuditEntry;
use domain::channel::Channel;
use domain::ids::UserId;
use domain::lineup::{ViewLimits, visible};
use domain::output_format::OutputFormat;
use domain::query::Query;
use domain::secret::Secret;
use domain::user::{User, UserLevel};
use http::header::COOKIE;
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use server::caller::Caller;
use server::reply::Refusal;
use services::archives::ChannelArchives;
use services::titles::SeenTitles;
use storage::Write;
use storage::records::append_audit_entry;
use url::form_urlencoded::Serializer;
use uuid::Uuid;

use super::access::Access;
use super::revision::{IfMatch, RecordKey};
use super::route::Route;
use crate::context::FrameContext;

/// Parameters of a login in the query or in a form.
pub(super) const QUERY_USERNAME: &str = "username";
pub(super) const QUERY_PASSWORD: &str = "password";

/// Returns the values of the cookies with this name, in the order in which the client sent them.
pub fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let texts = headers.get_all(COOKIE).into_iter().filter_map(|it| it.to_str().ok());
    let pairs = texts.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
    pairs.filter(move |it| it.0 == name).map(|it| it.1)
}

/// The first argument of every handler.
#[derive(Clone)]
pub struct Call {
    pub frame: Arc<FrameContext>,
    /// HEAD reaches the handler of GET.
    pub method: Method,
    pub caller: Caller,
    pub headers: HeaderMap,
    /// For a plugin, a user that is not stored.
    pub(super) user: Option<Arc<User>>,
    /// The caller, if it is a plugin.
    pub(super) plugin: Option<Arc<PluginCaller>>,
    /// `None` for routes that every network may use.
    pub(super) network_class: Option<NetworkClass>,
    pub(super) parameters: Parameters,
    /// Path of the route, with its parameters in braces.
    pub(super) pattern: &'static str,
    /// Path as requested. It may contain a password and must not be printed.
    pub(super) path: String,
    /// The query as requested. It may contain a password and must not be printed.
    pub query: Arc<Query>,
    /// Names of the fields of the body, as the route declares them.
    pub(super) fields: Vec<&'static str>,
    /// Facts that the activity log names besides the fields.
    pub(super) notes: Vec<String>,
    /// The record that the request is about.
    pub(super) record: Option<RecordKey>,
    /// The condition that this record fulfils in the write.
    pub(super) if_match: Option<IfMatch>,
    /// The digest of this record after the write.
    pub(super) written: Arc<Mutex<Option<u64>>>,
}

/// Path, headers and query may contain credentials.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({} {})", self.method, self.pattern)
    }
}

/// The parameters of a path, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(&'static str, Parameter)>);

/// A parameter of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    Number(u32),
    Uuid(Uuid),
    /// A number, and the format that its extension names.
    StreamFile(u32, Option<OutputFormat>),
    /// May be a password, so it does not print itself.
    Text(Secret),
}

/// The kind of a parameter, which its name determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// `{id}` and names that end with `_id`: the id of a record, without sign or decimals, of at most 32 bits.
    Id,
    /// `{uuid}`.
    Uuid,
    /// `{file}`: the id of a record as the name of a file, with or without `.ts`.
    File,
    /// `{stream_file}`: the same with any extension that names a format of live streams.
    StreamFile,
    /// All other names: any text that is not empty.
    Text,
}

impl ParameterKind {
    pub fn from_name(name: &str) -> Self {
        match name {
            "uuid" => Self::Uuid,
            "file" => Self::File,
            "stream_file" => Self::StreamFile,
            "id" => Self::Id,
            _ if name.ends_with("_id") => Self::Id,
            _ => Self::Text,
        }
    }

    /// Returns `None` if the text does not fit, so that the path does not exist.
    fn read(self, text: &str) -> Option<Parameter> {
        let number = |text: &str| {
            let is_number = text.bytes().all(|it| it.is_ascii_digit());
            text.parse().ok().filter(|_| is_number).map(Parameter::Number)
        };
        match self {
            Self::Id => number(text),
            Self::Uuid => Uuid::try_parse(text).ok().map(Parameter::Uuid),
            Self::File => number(text.strip_suffix(".ts").unwrap_or(text)),
            Self::StreamFile => {
                let has_extension =
                    |it: &OutputFormat| text.rsplit_once('.').is_some_and(|(_, of)| of == it.name());
                let format = OutputFormat::ALL.into_iter().find(has_extension);
                let digits = format.and_then(|_| text.rsplit_once('.')).map_or(text, |it| it.0);
                match number(digits)? {
                    Parameter::Number(id) => Some(Parameter::StreamFile(id, format)),
                    _ => None,
                }
            }
            Self::Text => (!text.is_empty()).then(|| Parameter::Text(Secret::new(text))),
        }
    }
}

impl Parameters {
    /// Reads a decoded segment and adds it. Returns false if it does not fit the parameter.
    #[must_use]
    pub(super) fn push(&mut self, name: &'static str, segment: &str) -> bool {
        let read = ParameterKind::from_name(name).read(segment);
        read.map(|it| self.0.push((name, it))).is_some()
    }

    /// Removes the parameter that was added last.
    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    fn get(&self, name: &str) -> Option<&Parameter> {
        self.0.iter().find(|it| it.0 == name).map(|it| &it.1)
    }

    /// Returns the parameter of this name if its kind is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Parameter::Text(text) => Some(text.expose()),
            Parameter::Number(_) | Parameter::StreamFile(..) | Parameter::Uuid(_) => None,
        }
    }

    /// Returns the parameter of this name if its kind is an id or a file.
    pub fn number(&self, name: &str) -> Option<u32> {
        match self.get(name)? {
            Parameter::Number(number) | Parameter::StreamFile(number, _) => Some(*number),
            Parameter::Uuid(_) | Parameter::Text(_) => None,
        }
    }

    /// Returns the format that the extension of the parameter `{stream_file}` names, if it has one.
    pub fn stream_format(&self) -> Option<OutputFormat> {
        match self.get("stream_file")? {
            Parameter::StreamFile(_, format) => *format,
            Parameter::Number(_) | Parameter::Uuid(_) | Parameter::Text(_) => None,
        }
    }

    /// Returns the parameter `{uuid}`.
    pub fn uuid(&self) -> Option<Uuid> {
        match self.get("uuid")? {
            Parameter::Uuid(uuid) => Some(*uuid),
            Parameter::Number(_) | Parameter::StreamFile(..) | Parameter::Text(_) => None,
        }
    }
}

/// Maximum number of records that an audit entry lists.
const RECORDS_LISTED_MAX: usize = 10;

/// Adds an entry if there is one and the write has changed a record.
fn record_changes(write: &mut Write<'_>, entry: Option<AuditEntry>) -> Result<(), Refusal> {
    let Some(entry) = entry else { return Ok(()) };
    let n_records = u32::try_from(write.changed().len()).unwrap_or(u32::MAX);
    if n_records == 0 {
        return Ok(());
    }
    let listed = write.changed().take(RECORDS_LISTED_MAX);
    let records = listed.map(|(collection, id)| (collection.to_owned(), id)).collect();
    Ok(append_audit_entry(write, AuditEntry { records, n_records, ..entry })?)
}

/// Returns the digest of a record, as the write sees it.
fn digest_of(write: &Write<'_>, record: Option<RecordKey>) -> Result<Option<u64>, Refusal> {
    let Some(RecordKey { collection, id }) = record else { return Ok(None) };
    Ok(write.digest(collection, id)?)
}

/// Refuses a write of a record that is another one than the client knows.
fn check_unchanged(
    write: &Write<'_>,
    record: Option<RecordKey>,
    if_match: Option<&IfMatch>,
) -> Result<(), Refusal> {
    if_match.map_or(Ok(()), |it| it.check(digest_of(write, record)?))
}

impl Call {
    /// Makes a call of this route from no network, without credentials, headers, parameters and query.
    pub fn new(frame: Arc<FrameContext>, route: &Route, caller: Caller) -> Self {
        Call {
            frame,
            method: route.method.clone(),
            caller,
            headers: HeaderMap::new(),
            user: None,
            plugin: None,
            network_class: None,
            parameters: Parameters::default(),
            pattern: route.path,
            path: route.path.to_owned(),
            query: Arc::default(),
            fields: Vec::new(),
            notes: Vec::new(),
            record: None,
            if_match: None,
            written: Arc::default(),
        }
    }

    /// Returns the authenticated user, who has things of their own. Always present if the route requires a level or a login,
    /// except that plugins are refused.
    pub fn user(&self) -> Result<&Arc<User>, Refusal> {
        self.check_no_plugin()?;
        self.identity()
    }

    /// Returns the authenticated user or, for a plugin, one with its name and the level of an admin, who is not stored and owns
    /// nothing. For levels and for the author of a change.
    pub fn identity(&self) -> Result<&Arc<User>, Refusal> {
        self.user.as_ref().ok_or_else(Refusal::no_credentials)
    }

    /// Returns the owner of what the caller creates: plugins own nothing.
    pub fn owner(&self) -> Result<Option<UserId>, Refusal> {
        let user = self.identity()?;
        Ok(self.plugin.is_none().then_some(user.id))
    }

    /// Returns the limits of what the caller may see and watch.
    pub fn view_limits(&self) -> ViewLimits {
        view_limits(&self.frame.models, self.user.as_deref())
    }

    /// Returns the films and series that the caller may see and watch.
    pub fn seen_titles(&self) -> SeenTitles {
        SeenTitles::new(&self.frame.models, self.identity().ok().map(|it| &**it))
    }

    /// Returns whether the caller may see and watch a channel. For many channels, use [`Call::view_limits`] once.
    pub fn can_see(&self, channel: &Channel) -> bool {
        visible(&self.view_limits(), channel)
    }

    /// Returns whether the caller may watch the past of channels that it sees.
    pub fn may_catch_up(&self) -> bool {
        self.user.as_ref().is_none_or(|it| it.may_catch_up())
    }

    /// Returns the archives of channels that the caller may watch.
    pub fn archives(&self) -> Arc<ChannelArchives> {
        if self.may_catch_up() { self.frame.archives.load(&self.frame.models) } else { Arc::default() }
    }

    /// Returns whether the caller is a user with all permissions.
    pub fn is_admin(&self) -> bool {
        self.user.as_ref().is_some_and(|it| it.may(UserLevel::Admin))
    }

    /// Returns the test by which lists show a channel to the caller: admins find all channels, also disabled ones, and
    /// others those that they may watch.
    pub fn listed(&self) -> impl Fn(&Channel) -> bool + use<> {
        let limits = (!self.is_admin()).then(|| self.view_limits());
        move |channel| limits.as_ref().is_none_or(|it| visible(it, channel))
    }

    /// Refuses callers from networks that may not use the route.
    pub(super) fn check_connect(&self) -> Result<(), Refusal> {
        self.network_class
            .map_or(Ok(()), |it| self.frame.networks.check_connect(&self.caller, it, self.pattern))
    }

    /// Refuses users on networks from which they may not use the route.
    pub(super) fn check_user(&self) -> Result<(), Refusal> {
        match (&self.user, self.network_class) {
            (Some(user), Some(class)) => {
                self.frame.networks.check_user(user, &self.caller, class, self.pattern)
            }
            _ => Ok(()),
        }
    }

    /// Counts the connection as that of a user, or among those of its address that have no login. Connections of routes for
    /// everyone stay as they are.
    pub(super) fn check_place(&self, access: Access) -> Result<(), Refusal> {
        let is_of_player = matches!(
            self.network_class,
            Some(NetworkClass::Streams | NetworkClass::XcApi | NetworkClass::M3uEpg | NetworkClass::Tuner)
        );
        match self.user.is_some() {
            true => self.note_place(true),
            false if is_of_player && !matches!(access, Access::Anyone) => self.note_place(false),
            false => Ok(()),
        }
    }

    /// Counts the connection of this request as that of a user, or among those of its address that use streams and lists
    /// without a login.
    ///
    /// # Errors
    /// The address has too many connections without a login.
    pub fn note_place(&self, has_user: bool) -> Result<(), Refusal> {
        let place = &self.caller.place;
        let noted = if has_user { place.note_user() } else { place.note_anonymous() };
        noted.map_err(|it| Refusal::unavailable(it.to_string()).retry_soon())
    }

    /// Refuses callers from networks that need credentials for the route.
    pub(super) fn check_anonymous(&self) -> Result<(), Refusal> {
        self.network_class
            .map_or(Ok(()), |it| self.frame.networks.check_anonymous(&self.caller, it, self.pattern))
    }

    /// Returns the parameter `{id}`.
    pub fn id(&self) -> Result<u32, Refusal> {
        self.id_of("id")
    }

    /// Returns the id with this parameter name. A route whose path lacks it is a bug, and the answer is 500.
    pub fn id_of(&self, name: &str) -> Result<u32, Refusal> {
        self.parameters.number(name).ok_or_else(|| self.lacks(name))
    }

    /// Returns the format that the extension in the path names, if it has one.
    pub fn stream_format(&self) -> Option<OutputFormat> {
        self.parameters.stream_format()
    }

    /// Returns the path as requested, with the query. Both may contain credentials.
    pub fn path_and_query(&self) -> String {
        if self.query.pairs().is_empty() {
            return self.path.clone();
        }
        let query = Serializer::new(String::new()).extend_pairs(self.query.pairs()).finish();
        format!("{}?{query}", self.path)
    }

    /// Returns the parameter `{uuid}`.
    pub fn uuid(&self) -> Result<Uuid, Refusal> {
        self.parameters.uuid().ok_or_else(|| self.lacks("uuid"))
    }

    /// Returns the text with this parameter name.
    pub fn text(&self, name: &str) -> Result<&str, Refusal> {
        self.parameters.text(name).ok_or_else(|| self.lacks(name))
    }

    /// Returns the text with this parameter name, if the path has it.
    pub fn text_if_any(&self, name: &str) -> Option<&str> {
        self.parameters.text(name)
    }

    /// Returns the refusal for a parameter that the path of the route does not have.
    fn lacks(&self, name: &str) -> Refusal {
        Refusal::fault(format_args!("find the parameter {name} in {}", self.pattern))
    }

    /// Runs a function as one transaction: a refusal discards all of its changes. Changes by an admin are recorded in the
    /// same transaction.
    pub fn write<R, F>(&self, fill: F) -> impl Future<Output = Result<R, Refusal>> + Send
    where
        F: FnOnce(&mut Write<'_>) -> Result<R, Refusal> + Send + 'static,
        R: Send + 'static,
    {
        let result = Arc::new(Mutex::new(None));
        let for_caller = Arc::clone(&result);
        let done = self.write_boxed(Box::new(move |write| {
            let done = fill(write)?;
            *result.lock() = Some(done);
            Ok(())
        }));
        result_of_write(done, for_caller)
    }

    /// Does the same for a function whose result is kept elsewhere.
    fn write_boxed(&self, fill: Fill) -> impl Future<Output = Result<(), Refusal>> + Send + use<'_> {
        let entry = self.user.as_ref().filter(|it| it.may(UserLevel::Admin)).map(|it| self.audit_entry(it));
        let (record, if_match) = (self.record, self.if_match.clone());
        let written = Arc::clone(&self.written);
        self.frame.models.store.write(move |write| {
            check_unchanged(write, record, if_match.as_ref())?;
            fill(write)?;
            record_changes(write, entry)?;
            *written.lock() = digest_of(write, record)?;
            Ok(())
        })
    }

    /// Adds a fact to the entry of the activity log about the next writes, such as a setting that decided. No value of a client.
    pub fn note(&mut self, fact: String) {
        self.notes.push(fact);
    }

    /// Returns who does what, when and from where.
    fn audit_entry(&self, user: &User) -> AuditEntry {
        AuditEntry {
            id: 0,
            at: now_ms(),
            user: user.id,
            username: user.username.clone(),
            address: self.caller.address().to_canonical(),
            user_agent: self.caller.agent.clone(),
            method: self.method.to_string(),
            path: self.pattern.to_owned(),
            fields: self.fields.iter().map(|it| (*it).to_owned()).chain(self.notes.iter().cloned()).collect(),
            records: Vec::new(),
            n_records: 0,
        }
    }

    /// Returns the absolute address under which the caller reaches the gateway, without a slash at the end. Every address
    /// in an answer begins with it.
    pub fn origin(&self) -> String {
        self.frame.public_url().unwrap_or_else(|| self.caller.base_url.to_string())
    }

    /// Returns the path with which all paths begin in the address that the caller uses: empty, or the path of a proxy, which
    /// removes it from requests. For pages, whose addresses have no host.
    pub fn base_path(&self) -> String {
        let origin = self.origin();
        origin.splitn(4, '/').nth(3).map(|it| format!("/{it}")).unwrap_or_default()
    }

    /// Returns the same on the player port, for addresses that only that port serves. It differs from [`Call::origin`] if
    /// the request came to the port of the admin API.
    pub fn player_origin(&self) -> String {
        self.frame.public_url().unwrap_or_else(|| {
            let config = &self.frame.config;
            let ports = [config.api_listen, config.player_listen].map(|it| it.address().port());
            let base = self.caller.base_url.clone();
            let authority = with_player_port(base.authority(), ports);
            base.with_authority(authority).to_string()
        })
    }

    /// Returns whether the query has a part of a login.
    pub(super) fn has_query_login(&self) -> bool {
        self.query.pairs().iter().any(|it| [QUERY_USERNAME, QUERY_PASSWORD].contains(&it.0.as_str()))
    }

    /// Returns user name and password of a login with [`Access::QueryLogin`], as the
    /// client sent them.
    pub fn query_login(&self) -> Option<(&str, &str)> {
        Some((self.query.single(QUERY_USERNAME)?, self.query.single(QUERY_PASSWORD)?))
    }

    /// Returns the URL of another page of the same list, on the host that the client used.
    pub fn url_of_page(&self, page: usize) -> String {
        let url = format!("{}{}?", self.origin(), self.path);
        let others = self.query.pairs().iter().filter(|it| it.0 != "page");
        let pairs = others.map(|it| (it.0.as_str(), it.1.as_str()));
        let page = page.to_string();
        let all = pairs.chain([("page", page.as_str())]);
        url + &Serializer::new(String::new()).extend_pairs(all).finish()
    }
}

/// Replaces the port of the admin API by the player port. A port that is neither belongs to a proxy, which forwards both.
/// The function of a write, which keeps its result itself.
type Fill = Box<dyn FnOnce(&mut Write<'_>) -> Result<(), Refusal> + Send>;

async fn result_of_write<R>(
    done: impl Future<Output = Result<(), Refusal>> + Send,
    result: Arc<Mutex<Option<R>>>,
) -> Result<R, Refusal> {
    done.await?;
    let result = result.lock().take();
    result.ok_or_else(|| Refusal::fault(format_args!("keep the result of a write")))
}

fn with_player_port(authority: &str, [api, player]: [u16; 2]) -> String {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.parse() == Ok(api) && !name.is_empty() => format!("{name}:{player}"),
        _ => authority.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_player_port_replaces_the_port_of_the_admin_api() {
        for (host, expected) in [
            ("nas:8000", "nas:9191"),
            ("[::1]:8000", "[::1]:9191"),
            ("nas:9191", "nas:9191"),
            ("tv.example", "tv.example"),
            ("tv.example:8443", "tv.example:8443"),
            ("[fd00::8000]", "[fd00::8000]"),
        ] {
            assert_eq!(with_player_port(host, [8000, 9191]), expected);
        }
    }
}
