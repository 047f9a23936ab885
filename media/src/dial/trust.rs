//! Which certificates of servers are accepted.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
};
use tracing::{debug, warn};

use crate::certificate::{RefusedCertificate, fingerprint};
use crate::error::{Cause, UpstreamError};

/// Maximum number of certificates of further authorities.
const AUTHORITIES_MAX: usize = 20;
/// Maximum number of configurations that are kept. Each belongs to an account with settings of its own.
const CONFIGS_MAX: usize = 64;

/// The certificates that are accepted besides those that authorities of the machine have signed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct CertificateTrust {
    /// Every certificate is accepted.
    pub accepts_any: bool,
    /// The SHA-256 of a certificate that is accepted whatever its names, dates and authority are.
    pub fingerprint: Option<[u8; 32]>,
    /// Certificates of further authorities.
    pub authorities: Vec<CertificateDer<'static>>,
}

impl CertificateTrust {
    /// Reads certificates of authorities as PEM.
    ///
    /// # Errors
    /// The text has no certificate, too many of them, or one that cannot be read.
    pub fn authorities_of(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
        let mut authorities = Vec::new();
        let mut roots = RootCertStore::empty();
        for found in CertificateDer::pem_slice_iter(pem.as_bytes()).take(AUTHORITIES_MAX + 1) {
            let number = authorities.len() + 1;
            let damaged = || format!("certificate {number} cannot be read");
            let certificate = found.map_err(|_| damaged())?;
            roots.add(certificate.clone()).map_err(|_| damaged())?;
            authorities.push(certificate);
        }
        match authorities.len() {
            0 => Err("it contains no certificate in the form PEM".to_owned()),
            1..=AUTHORITIES_MAX => Ok(authorities),
            _ => Err(format!("it contains more than {AUTHORITIES_MAX} certificates")),
        }
    }

    fn accepts(&self, certificate: &CertificateDer<'_>) -> bool {
        self.accepts_any
            || self.fingerprint.is_some_and(|it| it == fingerprint(certificate))
            // Some servers present the certificate of their authority itself.
            || self.authorities.iter().any(|it| it == certificate)
    }
}

/// The authorities of the machine, read once.
static MACHINE_ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        warn!("cannot read some certificate authorities of the machine: {error}");
    }
    let (n_added, n_ignored) = roots.add_parsable_certificates(native.certs);
    debug!(n_added, n_ignored, "certificate authorities of the machine loaded");
    if roots.is_empty() {
        warn!("no certificate authorities found: https sources will fail");
    }
    Arc::new(roots)
});

/// The configurations of TLS, each with the sessions that its connections may continue. A session that began without a check
/// must not continue with one.
#[derive(Default)]
pub(super) struct TlsConfigs {
    /// Authorities besides those of the machine, for all connections.
    authorities: Vec<CertificateDer<'static>>,
    configs: Mutex<HashMap<CertificateTrust, Arc<ClientConfig>>>,
}

impl TlsConfigs {
    pub(super) fn new(authorities: Vec<CertificateDer<'static>>) -> Self {
        Self { authorities, configs: Mutex::default() }
    }

    /// Returns the configuration for connections with this trust.
    ///
    /// # Errors
    /// The TLS library rejects its own defaults.
    pub(super) fn get(&self, trust: &CertificateTrust) -> Result<Arc<ClientConfig>, UpstreamError> {
        let mut configs = self.configs.lock();
        if let Some(config) = configs.get(trust) {
            return Ok(config.clone());
        }
        let all = self.authorities.iter().chain(&trust.authorities).cloned().collect();
        let config = Arc::new(client_config(CertificateTrust { authorities: all, ..trust.clone() }, None)?);
        if configs.len() >= CONFIGS_MAX {
            configs.clear();
        }
        configs.insert(trust.clone(), config.clone());
        Ok(config)
    }
}

/// Returns the configuration of TLS for requests of an HTTP library. Certificates of `proxy` are checked whatever the trust
/// is.
///
/// # Errors
/// The TLS library rejects its own defaults.
pub fn http_config(trust: &CertificateTrust, proxy: Option<&str>) -> Result<ClientConfig, UpstreamError> {
    let proxy = proxy.and_then(|it| ServerName::try_from(it.to_owned()).ok());
    let mut config = client_config(trust.clone(), proxy)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn client_config(
    trust: CertificateTrust,
    proxy: Option<ServerName<'static>>,
) -> Result<ClientConfig, UpstreamError> {
    Ok(ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Cause::Tls(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier(trust, proxy)))
        .with_no_client_auth())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn verifier(trust: CertificateTrust, proxy: Option<ServerName<'static>>) -> TrustVerifier {
    // The library makes none without authorities.
    let usual = |roots| WebPkiServerVerifier::builder_with_provider(roots, provider()).build().ok();
    let of_machine = usual(MACHINE_ROOTS.clone());
    let of_account = match trust.authorities.is_empty() {
        true => of_machine.clone(),
        false => {
            let mut roots = RootCertStore::clone(&MACHINE_ROOTS);
            roots.add_parsable_certificates(trust.authorities.iter().cloned());
            usual(Arc::new(roots))
        }
    };
    TrustVerifier { of_machine, of_account, trust, proxy, provider: provider() }
}

/// Checks certificates, and keeps the words for those that it refuses: nothing else sees the certificate.
#[derive(Debug)]
struct TrustVerifier {
    of_machine: Option<Arc<WebPkiServerVerifier>>,
    of_account: Option<Arc<WebPkiServerVerifier>>,
    trust: CertificateTrust,
    proxy: Option<ServerName<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let is_proxy = self.proxy.as_ref().is_some_and(|it| it == name);
        if !is_proxy && self.trust.accepts(certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        let usual = if is_proxy { &self.of_machine } else { &self.of_account };
        let checked = match usual {
            Some(usual) => usual.verify_server_cert(certificate, others, name, ocsp, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        };
        checked.map_err(|error| {
            let refused = RefusedCertificate::new(&error, certificate);
            rustls::Error::Other(OtherError(Arc::new(refused)))
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.trust.accepts_any {
            // Certificates of old devices cannot even be parsed.
            return Ok(HandshakeSignatureValid::assertion());
        }
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.trust.accepts_any {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::CertificateProblem;

    const AUTHORITY: &[u8] = include_bytes!("testdata/authority.der");
    const SERVER: &[u8] = include_bytes!("testdata/server.der");
    const NOW: u64 = 1_900_000_000;

    fn certificate(der: &[u8]) -> CertificateDer<'static> {
        CertificateDer::from(der.to_vec())
    }

    /// Presents a certificate for this host at this time, in seconds since 1970. Certificates of `proxy.example` are those of
    /// a proxy.
    fn judged(trust: &CertificateTrust, der: &[u8], host: &str, at: u64) -> Result<(), CertificateProblem> {
        let proxy = ServerName::try_from("proxy.example").unwrap();
        let verifier = verifier(trust.clone(), Some(proxy));
        let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(at));
        let host = ServerName::try_from(host.to_owned()).unwrap();
        match verifier.verify_server_cert(&certificate(der), &[], &host, &[], at) {
            Ok(_) => Ok(()),
            Err(error) => {
                Err(RefusedCertificate::in_error(&error).expect("words for the refusal").problem.clone())
            }
        }
    }

    #[test]
    fn the_reason_of_a_refused_certificate_is_said_in_words() {
        use CertificateProblem::{Expired, NotYetValid, OtherName, SelfSigned, UnknownAuthority, Unsuitable};

        let none = CertificateTrust::default();
        let known = CertificateTrust { authorities: vec![certificate(AUTHORITY)], ..none.clone() };
        assert_eq!(judged(&known, SERVER, "localhost", NOW), Ok(()));
        assert_eq!(judged(&none, SERVER, "localhost", NOW), Err(UnknownAuthority));
        assert_eq!(judged(&none, AUTHORITY, "localhost", NOW), Err(SelfSigned));
        assert!(matches!(judged(&known, SERVER, "localhost", 9_000_000_000), Err(Expired(_))));
        assert!(matches!(judged(&known, SERVER, "localhost", 1_000_000_000), Err(NotYetValid(_))));
        let Err(OtherName(names)) = judged(&known, SERVER, "tv.example", NOW) else { panic!("another name") };
        assert_eq!(names, ["localhost", "127.0.0.1"]);
        assert!(matches!(judged(&none, b"no certificate", "localhost", NOW), Err(Unsuitable(_))));
        assert_eq!(
            Expired(784_111_777).to_string(),
            "the certificate expired on Sun, 06 Nov 1994 08:49:37 GMT"
        );
        assert!(Expired(u64::MAX).to_string().contains("9999"));
    }

    #[test]
    fn a_pinned_certificate_or_any_is_accepted_whatever_else_is_wrong_and_never_for_a_proxy() {
        let pinned = CertificateTrust {
            fingerprint: Some(fingerprint(&certificate(SERVER))),
            ..CertificateTrust::default()
        };
        let any = CertificateTrust { accepts_any: true, ..CertificateTrust::default() };
        let own =
            CertificateTrust { authorities: vec![certificate(AUTHORITY)], ..CertificateTrust::default() };
        for at in [1_000_000_000, NOW, 9_000_000_000] {
            assert_eq!(judged(&pinned, SERVER, "tv.example", at), Ok(()));
            assert_eq!(judged(&any, SERVER, "tv.example", at), Ok(()));
            assert_eq!(judged(&any, b"no certificate", "tv.example", at), Ok(()));
            // A server that presents the authority itself.
            assert_eq!(judged(&own, AUTHORITY, "tv.example", at), Ok(()));
            assert!(judged(&pinned, AUTHORITY, "tv.example", at).is_err());
            for trust in [&pinned, &any] {
                assert!(judged(trust, SERVER, "proxy.example", at).is_err());
            }
        }
    }

    #[test]
    fn authorities_are_read_one_by_one_and_damage_is_named() {
        let generated = include_str!("testdata/authority.pem");
        assert_eq!(CertificateTrust::authorities_of(generated), Ok(vec![certificate(AUTHORITY)]));
        let twice = format!("A comment.\n{generated}\n{generated}");
        assert_eq!(CertificateTrust::authorities_of(&twice).unwrap().len(), 2);
        let damaged = format!("{generated}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        for (text, expected) in [
            ("", "it contains no certificate in the form PEM"),
            ("nothing", "it contains no certificate in the form PEM"),
            (&*damaged, "certificate 2 cannot be read"),
            (&*generated.repeat(21), "it contains more than 20 certificates"),
        ] {
            assert_eq!(CertificateTrust::authorities_of(text).unwrap_err(), expected, "{text}");
        }
    }
}
