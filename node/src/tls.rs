//! The encryption between nodes: TLS 1.3 with a certificate on both sides.
//!
//! A server has two configurations, chosen by the protocol that the client asks for (ALPN). One needs a certificate of the
//! cluster that is not revoked. The other is for machines that join: it asks for no certificate, so the server answers
//! nothing there except join requests.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime,
};
use rustls::server::{ClientHello, VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};

use super::digest;

/// Installs the TLS provider of this process. Later calls do nothing.
pub fn install_tls() {
    // An error means that a provider is already installed.
    let _ = ring::default_provider().install_default();
}

/// The protocol between nodes.
pub const NODE_PROTOCOL: &[u8] = b"headwater-node/1";
/// The protocol of joining.
pub const JOIN_PROTOCOL: &[u8] = b"headwater-join/1";

/// The certificate of this node, its key, and what it trusts. `Debug` omits the key.
pub struct NodeIdentity {
    /// The certificate of this node, and that of the authority.
    pub certificates: [CertificateDer<'static>; 2],
    pub key: PrivatePkcs8KeyDer<'static>,
    pub trusted: TrustedNodes,
}

/// How a node knows which certificates of the authority are still valid.
#[derive(Clone)]
pub enum TrustedNodes {
    /// The revoked certificates, signed by the authority.
    Except(CertificateRevocationListDer<'static>),
    /// The SHA-256 of each valid certificate. An edge node has no key of the authority, so it cannot sign a list.
    Listed(Arc<BTreeSet<[u8; 32]>>),
}

impl std::fmt::Debug for NodeIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeIdentity(…)")
    }
}

impl NodeIdentity {
    fn roots(&self) -> Result<Arc<RootCertStore>, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificates[1].clone())?;
        Ok(Arc::new(roots))
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.clone_key())
    }
}

/// The configurations of a server for other nodes. Made again when a certificate is revoked.
#[derive(Debug, Clone)]
pub struct NodeTls {
    mutual: Arc<ServerConfig>,
    join: Arc<ServerConfig>,
}

impl NodeTls {
    pub fn new(identity: &NodeIdentity) -> Result<Self, Error> {
        let verifier = WebPkiClientVerifier::builder_with_provider(identity.roots()?, provider());
        let verifier = match &identity.trusted {
            TrustedNodes::Except(revoked) => verifier.with_crls([revoked.clone()]),
            // The port looks for the certificate of each connection among those of the store.
            TrustedNodes::Listed(_) => verifier,
        };
        let verifier = verifier.build().map_err(|error| Error::General(error.to_string()))?;
        let builder = || ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]);
        let chain = || identity.certificates.to_vec();
        let mut mutual =
            builder()?.with_client_cert_verifier(verifier).with_single_cert(chain(), identity.key())?;
        mutual.alpn_protocols = vec![NODE_PROTOCOL.to_vec()];
        // A session that is resumed is not verified again, and its certificate may have been revoked since.
        mutual.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        mutual.send_tls13_tickets = 0;
        let mut join = builder()?.with_no_client_auth().with_single_cert(chain(), identity.key())?;
        join.alpn_protocols = vec![JOIN_PROTOCOL.to_vec()];
        join.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        join.send_tls13_tickets = 0;
        Ok(Self { mutual: Arc::new(mutual), join: Arc::new(join) })
    }

    /// Returns the configuration for a client, and whether it is one for joining. `None` if it asks for neither protocol,
    /// or for both.
    pub fn config_for(&self, hello: &ClientHello<'_>) -> Option<(Arc<ServerConfig>, bool)> {
        let mut protocols = hello.alpn()?;
        let (first, second) = (protocols.next()?, protocols.next());
        match (first, second) {
            (NODE_PROTOCOL, None) => Some((Arc::clone(&self.mutual), false)),
            (JOIN_PROTOCOL, None) => Some((Arc::clone(&self.join), true)),
            _ => None,
        }
    }
}

/// Returns the configuration with which this node connects to others. The server name is that of the other
/// [node](super::node_name).
pub fn client_config(identity: &NodeIdentity) -> Result<ClientConfig, Error> {
    let verifier = WebPkiServerVerifier::builder_with_provider(identity.roots()?, provider());
    let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13])?;
    let failed = |error: VerifierBuilderError| Error::General(error.to_string());
    let builder = match &identity.trusted {
        TrustedNodes::Except(revoked) => {
            builder.with_webpki_verifier(verifier.with_crls([revoked.clone()]).build().map_err(failed)?)
        }
        TrustedNodes::Listed(listed) => {
            let verifier =
                ListedVerifier { inner: verifier.build().map_err(failed)?, listed: Arc::clone(listed) };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    let mut config = builder.with_client_auth_cert(identity.certificates.to_vec(), identity.key())?;
    config.alpn_protocols = vec![NODE_PROTOCOL.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// Returns the configuration with which a machine joins a cluster whose authority has this fingerprint. The server name is
/// [`JOIN_NAME`](super::authority::JOIN_NAME).
pub fn join_client_config(authority: [u8; 32]) -> Result<ClientConfig, Error> {
    let verifier = FingerprintVerifier { authority, provider: provider() };
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![JOIN_PROTOCOL.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// Returns the configuration with which a node that has no records yet fetches them. Like [`join_client_config`], but with
/// the certificate of the node: the revoked certificates are among the records.
pub fn first_client_config(
    certificates: [CertificateDer<'static>; 2],
    key: PrivatePkcs8KeyDer<'static>,
) -> Result<ClientConfig, Error> {
    let verifier = FingerprintVerifier { authority: digest(&certificates[1]), provider: provider() };
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(certificates.to_vec(), PrivateKeyDer::Pkcs8(key))?;
    config.alpn_protocols = vec![NODE_PROTOCOL.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Trusts a certificate of the authority only if it is listed.
#[derive(Debug)]
struct ListedVerifier {
    inner: Arc<WebPkiServerVerifier>,
    listed: Arc<BTreeSet<[u8; 32]>>,
}

impl ServerCertVerifier for ListedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
        if self.listed.contains(&digest(end_entity)) {
            return Ok(verified);
        }
        Err(Error::InvalidCertificate(CertificateError::Revoked))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Trusts the authority with a known fingerprint, whose certificate the server sends. All else is verified as usual.
#[derive(Debug)]
struct FingerprintVerifier {
    authority: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for FingerprintVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let authority = intermediates.iter().find(|it| digest(it) == self.authority);
        let authority = authority.ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider))
                .build()
                .map_err(|error| Error::General(error.to_string()))?;
        verifier.verify_server_cert(end_entity, &[], server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
