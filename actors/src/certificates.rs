//! The certificates that an account accepts, as the connections of streams and requests know them.

use std::sync::Arc;

use domain::certificate::CertificateCheck;
use media::dial::trust::CertificateTrust;
use tracing::warn;

/// Returns the certificates of servers that an account accepts.
pub(crate) fn certificate_trust(check: &CertificateCheck) -> Arc<CertificateTrust> {
    let authorities = check.authority.as_deref().map(CertificateTrust::authorities_of);
    let authorities = authorities.transpose().unwrap_or_else(|error| {
        // It was checked when it was set.
        warn!("the certificate authority of an account cannot be used: {error}");
        None
    });
    Arc::new(CertificateTrust {
        accepts_any: !check.verify,
        fingerprint: check.fingerprint.map(|it| it.0),
        authorities: authorities.unwrap_or_default(),
    })
}
