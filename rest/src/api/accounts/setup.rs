//! `/api/accounts/initialize-superuser/`: creates the first admin of a new installation.
//!
//! A caller on the machine of the gateway may do so, and anyone who sends the setup code that the gateway printed at its
//! start. The local network is not enough: anyone in it could be first.

use actors::now_ms;
use domain::ids::UserId;
use domain::origin::Origin;
use domain::secret::Secret;
use domain::user::{USERNAME_CHARS_MAX, User, UserLevel};
use http::header::{HOST, HeaderValue, ORIGIN};
use http::{HeaderMap, StatusCode};
use resource_derive::{Body, View};
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;

use super::passwords;
use super::user_rules::{CHARS_MAX, PASSWORD_CHARS_MAX, check_email, check_name};
use crate::context::RestCall;

/// The first admin.
#[derive(Clone, Debug, Body)]
pub(crate) struct FirstAdmin {
    /// Letters, digits, spaces and signs, except `/ \ ? # % :`.
    #[field(chars_max = USERNAME_CHARS_MAX, example = "admin")]
    username: String,
    /// At least 10 characters, without the user name. Stored as a slow hash.
    #[field(chars_max = PASSWORD_CHARS_MAX)]
    password: Secret,
    /// Email address, for information only.
    #[field(blank, chars_max = CHARS_MAX)]
    email: Option<String>,
    /// The code that the gateway printed at its start. Not needed on the machine of the gateway.
    #[field(blank, chars_max = CHARS_MAX)]
    setup_code: Option<Secret>,
}

/// State of the initial setup.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SetupView {
    /// Whether an admin exists. If so, this endpoint changes nothing.
    superuser_exists: bool,
    /// The caller's address as seen by the gateway.
    #[field(example = "192.168.1.5")]
    client_ip: String,
    /// Whether the first admin can be created now.
    setup_allowed: bool,
    /// Whether this caller has to send the setup code.
    setup_code_required: bool,
}

/// Result of creating the first admin.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct FirstAdminView {
    /// Whether this request created the admin; `false` if an admin existed already, in which case nothing was changed.
    created: bool,
    /// Always `true`.
    superuser_exists: bool,
}

const REFUSED: &str = "Creating the first admin requires the setup code that the gateway printed at its start, as \
                       \"setup_code\". Without it, run \"headwater user add NAME --superuser\" on its machine.";
const WRONG_CODE: &str = "This is not the setup code that the gateway printed at its last start. A new one is printed at each start.";

pub(super) fn routes() -> Vec<Route> {
    let path = "/api/accounts/initialize-superuser/";
    vec![
        Route::get(path, Access::Anyone, "Returns whether the first admin still has to be created.", retrieve),
        Route::post(
            path,
            Access::Anyone,
            "Creates the first admin, with the setup code or on the machine of the gateway. Changes nothing if an \
             admin exists.",
            create,
        )
        .refuses(
            StatusCode::FORBIDDEN,
            "The setup code is wrong, or is missing and the request comes from another machine, through a proxy, from \
             a page of another site, or under another host name than an address or `localhost`.",
        ),
    ]
}

async fn retrieve(call: Call) -> Result<SetupView, Refusal> {
    let superuser_exists = has_admin(&call);
    Ok(SetupView {
        superuser_exists,
        client_ip: call.caller.address().to_string(),
        setup_allowed: !superuser_exists,
        setup_code_required: !superuser_exists && !is_on_this_machine(&call),
    })
}

async fn create(call: Call, first: FirstAdmin) -> Result<FirstAdminView, Refusal> {
    if has_admin(&call) {
        return Ok(FirstAdminView { created: false, superuser_exists: true });
    }
    check_caller(&call, first.setup_code.as_ref())?;
    let username = check_name(&first.username)?;
    let email = check_email(first.email.unwrap_or_default())?;
    let user = User::new(UserId(0), username, UserLevel::Admin, now_ms());
    let mut user = User { email, is_staff: true, is_superuser: true, ..user };
    user.set_password(passwords::hash(&call, &user, &first.password).await?);
    let created = call.write(move |write| {
        // Another request may have created one in the meantime.
        if write.all::<User>()?.iter().any(is_admin) {
            return Ok(false);
        }
        user.id = UserId(write.next_id::<User>()?);
        write.put(&user)?;
        Ok(true)
    });
    let created = created.await?;
    call.rest().operation.setup_code.expire();
    Ok(FirstAdminView { created, superuser_exists: true })
}

/// Refuses callers who may not create the first admin.
fn check_caller(call: &Call, code: Option<&Secret>) -> Result<(), Refusal> {
    let refused = |detail| Err(Refusal::status(StatusCode::FORBIDDEN).with_detail(detail));
    match code.map(Secret::expose).filter(|it| !it.is_empty()) {
        // The code proves more than the address, so a wrong one is not ignored.
        Some(code) if call.rest().operation.setup_code.fits(code) => Ok(()),
        Some(_) => refused(WRONG_CODE),
        None if is_on_this_machine(call) => Ok(()),
        None => refused(REFUSED),
    }
}

fn has_admin(call: &Call) -> bool {
    call.rest().models.users.load().iter().any(|it| is_admin(it))
}

/// Returns whether the user has every permission, or will have when activated again.
fn is_admin(user: &User) -> bool {
    user.effective_level() == UserLevel::Admin
}

/// Returns whether the caller is a program on the same machine, or a page of the gateway in a browser there.
pub(super) fn is_on_this_machine(call: &Call) -> bool {
    is_local(&call.caller.origin, &call.headers)
}

fn is_local(origin: &Origin, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(HeaderValue::as_bytes);
    origin.is_on_this_machine(text(HOST), text(ORIGIN))
}

#[cfg(test)]
mod tests {
    use config::{Config, ContainerProxy};
    use http::header::HeaderName;
    use server::origin::Origins;

    use super::*;

    #[track_caller]
    fn check(address: &str, headers: &[(&'static str, &'static str)], expected: bool) {
        let sent = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let config = Config {
            trusted_proxies: "127.0.0.2".parse().unwrap(),
            container_proxy: ContainerProxy::None,
            ..Config::default()
        };
        let local = "127.0.0.1".parse().unwrap();
        let origin = Origins::new(&config).origin(address.parse().unwrap(), local, &sent);
        assert_eq!(is_local(&origin, &sent), expected, "{address} {headers:?}");
    }

    #[test]
    fn without_a_code_only_loopback_without_a_proxy_or_another_page_creates_the_first_admin() {
        const HOST: (&str, &str) = ("host", "localhost:9191");
        for loopback in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            check(loopback, &[HOST], true);
            check(loopback, &[HOST, ("origin", "http://localhost:9191")], true);
            check(loopback, &[HOST, ("origin", "https://elsewhere.example")], false);
            check(loopback, &[HOST, ("origin", "null")], false);
            for header in ["forwarded", "x-forwarded-for", "x-real-ip"] {
                check(loopback, &[HOST, (header, "127.0.0.1")], false);
            }
        }
        check("127.0.0.2", &[HOST, ("x-forwarded-for", "127.0.0.1")], false);
        for other in ["192.168.1.5", "10.0.0.5", "::ffff:10.0.0.5", "fd00::5", "192.0.2.1", "2001:db8::1"] {
            check(other, &[HOST], false);
        }
    }

    #[test]
    fn a_host_name_that_a_page_could_point_at_this_machine_is_refused() {
        for host in
            ["localhost", "LocalHost:8000", "127.0.0.1", "127.0.0.1:9191", "[::1]:9191", "192.168.1.5"]
        {
            check("127.0.0.1", &[("host", host)], true);
        }
        for host in
            ["evil.example:9191", "nas:9191", "localhost.evil.example", "127.0.0.1.evil.example", "", "[x]:1"]
        {
            check("127.0.0.1", &[("host", host), ("origin", "http://evil.example:9191")], false);
            check("127.0.0.1", &[("host", host)], false);
        }
        check("127.0.0.1", &[], false);
    }
}
