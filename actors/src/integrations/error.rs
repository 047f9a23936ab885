//! Why a call about integrations fails.

/// Reason why a call about integrations fails.
#[derive(Debug, thiserror::Error)]
pub enum IntegrationError {
    #[error("there is no such integration")]
    NotFound,
    #[error("no event of this integration is enabled")]
    NoEvents,
    #[error("integrations do not run")]
    NotRunning,
    #[error("a bug: the test of an integration panicked")]
    TestPanicked,
    #[error(transparent)]
    Store(#[from] storage::Error),
}
