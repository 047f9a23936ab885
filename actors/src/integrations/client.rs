//! Requests of webhooks. Connections are kept alive; each one is opened only to an address that is allowed.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::GeneralPurpose;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use domain::egress::{AllowedNetworks, Distance, EgressError, Reach, distance};
use domain::integration::{Signing, Webhook};
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Certificate, Client, Method, Response, StatusCode, Url};
use sha2::Sha256;
use tokio::net::lookup_host;
use tokio::time::{Instant, timeout_at};
use url::Host;

use super::state::Running;
use crate::egress::Egress;
use crate::fetch::{DEFAULT_USER_AGENT, retry_after, with_causes};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of a whole request and its answer.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of bytes that are read of an answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Time for which a connection without requests is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Prefix of the secrets of Standard Webhooks.
const SECRET_PREFIX: &str = "whsec_";

/// The client of one webhook, while its address and its certificate stay the same.
#[derive(Default)]
pub(super) struct ClientCache(Mutex<Option<CachedClient>>);

struct CachedClient {
    url: String,
    ca_certificate: Option<String>,
    stays_private: bool,
    client: Client,
}

/// A request for a webhook.
pub(super) struct WebhookRequest<'a> {
    pub(super) webhook: &'a Webhook,
    pub(super) content_type: &'static str,
    pub(super) body: &'a str,
    /// The header `webhook-id`.
    pub(super) id: String,
    /// Milliseconds since 1970.
    pub(super) now: i64,
    /// Whether it may lead into private networks only, because others could read it on its way.
    pub(super) stays_private: bool,
}

/// The answer of a webhook.
#[derive(Debug)]
pub(super) struct WebhookReply {
    pub(super) status: StatusCode,
    /// The beginning.
    pub(super) body: String,
    /// The pause that the target asks for.
    pub(super) retry_after: Option<Duration>,
}

/// Reason why there is no answer. Contains no address beyond the host.
#[derive(Debug)]
pub(super) enum WebhookError {
    /// No further attempt can succeed.
    Never(String),
    /// A further attempt may succeed.
    Later(String),
}

/// The reason why a webhook may not lead to an address.
#[derive(Debug, Clone, Copy)]
enum Forbidden {
    Egress(EgressError),
    /// Others could read it on its way.
    Public,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => {
                "a trusted target outside of private networks needs HTTPS, because it gets addresses with logins"
            }
            Self::Egress(EgressError::Reserved) => {
                "a webhook may not lead to link-local addresses and metadata services"
            }
            Self::Egress(EgressError::OwnListener) => "a webhook may not lead to the gateway itself",
            Self::Egress(EgressError::FromPublicToPrivate | EgressError::ToThisMachine) => {
                "the address is nearer than integrations.nearest_network allows"
            }
        })
    }
}

impl std::error::Error for Forbidden {}

/// Resolves names to the addresses that are allowed.
#[derive(Clone)]
struct AllowedAddresses {
    egress: Egress,
    port: u16,
    stays_private: bool,
}

impl AllowedAddresses {
    fn check(&self, address: SocketAddr) -> Result<(), Forbidden> {
        if self.stays_private && distance(address.ip()) == Some(Distance::Public) {
            return Err(Forbidden::Public);
        }
        self.egress.check(address).map_err(Forbidden::Egress)
    }
}

impl Resolve for AllowedAddresses {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.clone();
        Box::pin(async move {
            let mut refusal = None;
            let found = lookup_host((name.as_str(), rules.port)).await?;
            let is_allowed =
                |it: &SocketAddr| rules.check(*it).map_err(|reason| refusal = Some(reason)).is_ok();
            let allowed: Vec<_> = found.filter(is_allowed).collect();
            match refusal {
                Some(reason) if allowed.is_empty() => Err(reason.into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

impl ClientCache {
    /// Sends a request.
    ///
    /// # Errors
    /// There is no answer.
    pub(super) async fn send(
        &self,
        running: &Running,
        request: WebhookRequest<'_>,
    ) -> Result<WebhookReply, WebhookError> {
        let url = Url::parse(request.webhook.url.expose())
            .map_err(|_| WebhookError::Never("the address is not valid".to_owned()))?;
        let client = self.client(running, request.webhook, &url, request.stays_private)?;
        exchange(running, &client, url, request).await
    }

    fn client(
        &self,
        running: &Running,
        webhook: &Webhook,
        url: &Url,
        stays_private: bool,
    ) -> Result<Client, WebhookError> {
        let egress = Egress::new(
            Reach::named_by(running.settings.nearest_network, AllowedNetworks::OfPlaylist),
            running.own_listeners.clone(),
        );
        let port = url.port_or_known_default().unwrap_or_default();
        let rules = AllowedAddresses { egress, port, stays_private };
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            Some(Host::Domain(_)) => None,
            None => return Err(WebhookError::Never("the address has no host".to_owned())),
        };
        if let Some(address) = literal {
            let checked = rules.check(SocketAddr::new(address, port));
            checked.map_err(|reason| WebhookError::Never(reason.to_string()))?;
        }
        let mut cached = self.0.lock();
        if let Some(known) = &*cached
            && known.url == url.as_str()
            && known.ca_certificate == webhook.ca_certificate
            && known.stays_private == stays_private
        {
            return Ok(known.client.clone());
        }
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(usize::from(domain::integration::PARALLEL_MAX))
            .dns_resolver(Arc::new(rules))
            // A proxy would resolve the name again.
            .no_proxy();
        let own = match &webhook.ca_certificate {
            Some(pem) => certificates(pem),
            None => Some(Vec::new()),
        };
        let wrong_certificate = || WebhookError::Never("the CA certificate is not valid".to_owned());
        let own = own.ok_or_else(wrong_certificate)?;
        let client = match url.scheme() {
            // Reading those of the system takes time and memory; no redirect leads to an encrypted address.
            "http" => client.tls_certs_only([]),
            _ => client.tls_certs_merge(own),
        };
        let client = client.build().map_err(|cause| match webhook.ca_certificate {
            Some(_) => wrong_certificate(),
            None => WebhookError::Later(format!("failed to set up the HTTP client: {cause}")),
        })?;
        *cached = Some(CachedClient {
            url: url.as_str().to_owned(),
            ca_certificate: webhook.ca_certificate.clone(),
            stays_private,
            client: client.clone(),
        });
        Ok(client)
    }
}

/// Reads certificates in PEM. `None` if there is none, or one that cannot be read.
pub(super) fn certificates(pem: &str) -> Option<Vec<Certificate>> {
    Certificate::from_pem_bundle(pem.as_bytes()).ok().filter(|it| !it.is_empty())
}

async fn exchange(
    running: &Running,
    client: &Client,
    url: Url,
    request: WebhookRequest<'_>,
) -> Result<WebhookReply, WebhookError> {
    let WebhookRequest { webhook, body, now, .. } = request;
    let method = Method::from_bytes(webhook.method.as_bytes())
        .map_err(|_| WebhookError::Never("the method is not valid".to_owned()))?;
    let is_get = method == Method::GET;
    let mut sent = client.request(method, url).headers(headers(running, &request)?);
    // Servers refuse or ignore a body of GET.
    if !is_get {
        sent = sent.body(body.to_owned());
    }
    let deadline = Instant::now() + TOTAL_TIMEOUT;
    let late =
        |_| WebhookError::Later(format!("the target did not answer within {} s", TOTAL_TIMEOUT.as_secs()));
    let response = timeout_at(deadline, sent.send()).await.map_err(late)?.map_err(failure)?;
    let status = response.status();
    let retry_after = retry_after(response.headers(), now);
    // The status says enough if the rest of the answer is lost or late.
    let body = beginning_of(response, deadline).await;
    Ok(WebhookReply { status, body: String::from_utf8_lossy(&body).into_owned(), retry_after })
}

/// Returns the headers of a request. Those of the integration come last, and replace the content type and the agent.
fn headers(running: &Running, request: &WebhookRequest<'_>) -> Result<HeaderMap, WebhookError> {
    let wrong = |name: &str| WebhookError::Never(format!("the header {name:?} cannot be sent"));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(request.content_type));
    let agent = running.settings.user_agent.as_deref().unwrap_or(DEFAULT_USER_AGENT);
    headers.insert(USER_AGENT, HeaderValue::from_str(agent).map_err(|_| wrong("user-agent"))?);
    let seconds = (request.now / 1000).to_string();
    let mut own = vec![("webhook-id", request.id.clone()), ("webhook-timestamp", seconds.clone())];
    if let Some(signing) = &request.webhook.signing {
        let signed = format!("{}.{seconds}.{}", request.id, body_of(request));
        own.push(("webhook-signature", signatures(signing, &signed, request.now)?));
    }
    for (name, value) in own {
        headers.insert(HeaderName::from_static(name), value.parse().map_err(|_| wrong(name))?);
    }
    for (name, value) in &request.webhook.headers {
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(name))?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| wrong(name))?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

fn body_of<'a>(request: &WebhookRequest<'a>) -> &'a str {
    if request.webhook.method == Method::GET.as_str() { "" } else { request.body }
}

/// Returns the signatures of Standard Webhooks: of the present secret, and of the old one while it still signs.
fn signatures(signing: &Signing, signed: &str, now: i64) -> Result<String, WebhookError> {
    let old = signing.old.iter().filter(|it| it.1 > now).map(|it| &it.0);
    let all = std::iter::once(&signing.secret).chain(old).map(|secret| signature(secret.expose(), signed));
    let all: Option<Vec<_>> = all.collect();
    let wrong = || WebhookError::Never("the signing secret is not \"whsec_\" and Base64".to_owned());
    all.map(|it| it.join(" ")).ok_or_else(wrong)
}

fn signature(secret: &str, signed: &str) -> Option<String> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let base64 = GeneralPurpose::new(&STANDARD, LENIENT);
    let key = base64.decode(secret.strip_prefix(SECRET_PREFIX)?).ok()?;
    let mac = Hmac::<Sha256>::new_from_slice(&key).ok()?.chain_update(signed);
    Some(format!("v1,{}", base64.encode(mac.finalize().into_bytes())))
}

/// Reads the beginning of an answer: whatever arrives before it breaks off and in time.
async fn beginning_of(mut response: Response, deadline: Instant) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < ANSWER_BYTES_MAX
        && let Ok(Ok(Some(piece))) = timeout_at(deadline, response.chunk()).await
    {
        body.extend_from_slice(&piece[..piece.len().min(ANSWER_BYTES_MAX - body.len())]);
    }
    body
}

/// Returns what a failed request means.
fn failure(error: reqwest::Error) -> WebhookError {
    let error = error.without_url();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(it) = cause {
        if let Some(forbidden) = it.downcast_ref::<Forbidden>() {
            return WebhookError::Never(forbidden.to_string());
        }
        cause = it.source();
    }
    if error.is_builder() {
        return WebhookError::Never(with_causes(&error));
    }
    WebhookError::Later(with_causes(&error))
}

#[cfg(test)]
mod tests {
    use domain::secret::Secret;

    use super::*;

    #[test]
    fn requests_are_signed_as_the_standard_says() {
        // The example of the Standard Webhooks libraries.
        let signed = r#"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}"#;
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signature(secret, signed).as_deref(), Some(expected));
        let signing =
            Signing { secret: Secret::new("whsec_c2VjcmV0"), old: Some((Secret::new(secret), 1_000)) };
        let both = signatures(&signing, signed, 999).unwrap();
        assert!(both.ends_with(&format!(" {expected}")) && both.matches("v1,").count() == 2, "{both}");
        assert_eq!(signatures(&signing, signed, 1_000).unwrap().matches("v1,").count(), 1);
        for wrong in ["secret", "whsec_?", "c2VjcmV0"] {
            assert_eq!(signature(wrong, signed), None, "{wrong}");
        }
    }
}
