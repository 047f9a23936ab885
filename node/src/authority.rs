//! The certificate authority of a cluster.
//!
//! Certificates do not expire: a machine whose clock starts in 1970, or that was off for years, has to find its cluster
//! again. Access ends by revocation, which every node checks with each connection.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use domain::cluster::certificate::{ClusterAuthority, NodeCertificate};
use domain::cluster::record::NodeId;
use domain::cluster::token::NodeRole;
use domain::secret::Secret;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, PKCS_ED25519,
    PublicKeyData, RevokedCertParams, SerialNumber, SignatureAlgorithm, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivatePkcs8KeyDer};
use storage::Store;
use storage::log::SealingKey;

use super::{NodeError, digest, node_name, stored_authority};

/// The name of the authority, which issuing depends on.
const AUTHORITY_NAME: &str = "Headwater cluster";
/// A name that all certificates have, for joining nodes, which know no node yet.
pub const JOIN_NAME: &str = "join.headwater.internal";

const ISSUE: &str = "issue a certificate";
const READ_KEY: &str = "read the key of the cluster's certificate authority";

/// An authority that can issue certificates. `Debug` omits the key.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
}

/// The public Ed25519 key of a node.
struct NodeKey<'a>(&'a [u8; 32]);

impl PublicKeyData for NodeKey<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ED25519
    }
}

impl Authority {
    /// Creates an authority with a new key.
    pub fn new() -> Result<(Self, ClusterAuthority), NodeError> {
        let key = KeyPair::generate_for(&PKCS_ED25519).map_err(NodeError::certificate("make a key"))?;
        let certificate = params().self_signed(&key).map_err(NodeError::certificate(ISSUE))?;
        let stored = ClusterAuthority {
            certificate: certificate.der().to_vec(),
            key: Secret::new(HEXLOWER.encode(key.serialized_der())),
        };
        Ok((Self { certificate: certificate.der().clone(), issuer: Issuer::new(params(), key) }, stored))
    }

    /// Reads a stored authority.
    pub fn from_stored(stored: &ClusterAuthority) -> Result<Self, NodeError> {
        let invalid = || NodeError::Certificate { what: READ_KEY, cause: "it is invalid".to_owned() };
        let key = HEXLOWER_PERMISSIVE.decode(stored.key.expose().as_bytes()).map_err(|_| invalid())?;
        let key = PrivatePkcs8KeyDer::from(key);
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ED25519)
            .map_err(NodeError::certificate(READ_KEY))?;
        let certificate = CertificateDer::from(stored.certificate.clone());
        Ok(Self { issuer: Issuer::new(params(), key), certificate })
    }

    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Issues a certificate for the public Ed25519 key of a node.
    pub fn issue(
        &self,
        node: NodeId,
        public_key: &[u8; 32],
        serial: [u8; 16],
    ) -> Result<CertificateDer<'static>, NodeError> {
        let mut params = CertificateParams::new([node_name(node), JOIN_NAME.to_owned()])
            .map_err(NodeError::certificate(ISSUE))?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, node_name(node));
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&NodeKey(public_key), &self.issuer);
        Ok(certificate.map_err(NodeError::certificate(ISSUE))?.der().clone())
    }

    /// Signs the list of revoked certificates, which may be empty.
    pub fn revocation_list(
        &self,
        serials: &[[u8; 16]],
    ) -> Result<CertificateRevocationListDer<'static>, NodeError> {
        // Nobody looks at the times, nor at the number: the list is made from the store each time.
        let at = date_time_ymd(2000, 1, 1);
        let revoked = serials.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from_slice(serial),
            revocation_time: at,
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: at,
            next_update: date_time_ymd(4096, 1, 1),
            crl_number: SerialNumber::from(serials.len() as u64),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.issuer);
        Ok(list.map_err(NodeError::certificate("sign the list of revoked certificates"))?.der().clone())
    }
}

/// The same for each authority, so that it can be read back without parsing its certificate.
fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, AUTHORITY_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// The private keys of a node. `Debug` omits them.
pub struct NodeSecrets {
    /// In PKCS #8.
    key: Vec<u8>,
    public_key: [u8; 32],
    pub sealing: SealingKey,
}

impl std::fmt::Debug for NodeSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeSecrets(…)")
    }
}

impl NodeSecrets {
    /// Makes the keys of a new node.
    pub fn new() -> Result<Self, NodeError> {
        let key = KeyPair::generate_for(&PKCS_ED25519).map_err(NodeError::certificate("make a key"))?;
        let public_key = key.public_key_raw().try_into().map_err(|_| NodeError::InvalidRequest)?;
        Ok(Self { key: key.serialize_der(), public_key, sealing: SealingKey::random()? })
    }

    /// Returns the private key, in PKCS #8.
    pub fn private_key(&self) -> PrivatePkcs8KeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone())
    }

    /// Returns the public Ed25519 key.
    pub fn public_key(&self) -> &[u8; 32] {
        &self.public_key
    }
}

/// Stores a new authority and the version of the cluster, unless there is one, and a certificate of this node. Returns its number, its certificate and that
/// of the authority. Blocks.
pub fn add_first_node(
    store: &Store,
    secrets: &NodeSecrets,
    now: i64,
) -> Result<(NodeId, CertificateDer<'static>, CertificateDer<'static>), NodeError> {
    let (new, stored) = Authority::new()?;
    let (public_key, sealing_key) = (*secrets.public_key(), secrets.sealing.public());
    store.write_blocking(move |write| {
        let authority = match write.get::<ClusterAuthority>(1)? {
            // An attempt that ended before the file of the node was written.
            Some(present) => Authority::from_stored(&present)?,
            None => {
                write.put(&stored)?;
                super::versions::begin(write)?;
                new
            }
        };
        let id = write.next_id::<NodeCertificate>()?;
        let (node, certificate) =
            add_node(write, &authority, id, NodeRole::Full, &public_key, &sealing_key, now)?;
        Ok((node, certificate, authority.certificate))
    })
}

/// Issues a certificate for a new node and stores it. Its id is also the number of the node, so that is never used twice.
pub(super) fn add_node(
    write: &mut storage::Write<'_>,
    authority: &Authority,
    id: u32,
    role: NodeRole,
    public_key: &[u8; 32],
    sealing_key: &[u8; 32],
    now: i64,
) -> Result<(NodeId, CertificateDer<'static>), NodeError> {
    let node = NodeId(id);
    let mut serial = [0; 16];
    getrandom::fill(&mut serial)
        .map_err(|cause| NodeError::Certificate { what: ISSUE, cause: cause.to_string() })?;
    // A positive number of exactly 16 bytes.
    serial[0] = serial[0] & 0x7f | 0x40;
    let certificate = authority.issue(node, public_key, serial)?;
    write.put(&NodeCertificate {
        id,
        node,
        role,
        fingerprint: digest(&certificate),
        serial,
        sealing_key: *sealing_key,
        issued_at: now,
        revoked_at: None,
    })?;
    Ok((node, certificate))
}

/// Revokes all certificates of a node. Blocks. The data keys that the node had have to be rotated afterwards.
///
/// # Errors
/// If the cluster has no such node.
pub fn revoke(store: &Store, node: NodeId, now: i64) -> Result<(), NodeError> {
    store.write_blocking(move |write| {
        let certificates = write.by::<NodeCertificate>("node", node.0.to_be_bytes())?;
        if certificates.is_empty() {
            return Err(NodeError::UnknownNode(node));
        }
        for certificate in certificates.into_iter().filter(|it| it.revoked_at.is_none()) {
            write.put(&NodeCertificate { revoked_at: Some(now), ..certificate })?;
        }
        Ok(())
    })
}

/// Reads the authority from the store.
///
/// # Errors
/// If the store belongs to no cluster.
pub fn read_authority(store: &Store) -> Result<Authority, NodeError> {
    Authority::from_stored(&stored_authority(store)?)
}
