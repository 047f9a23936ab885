//! The versions of NATS servers that are safe.

/// The oldest version that is accepted.
pub const VERSION_MIN: [u32; 3] = [2, 12, 3];

/// Checks the version of a server. The error completes "the NATS server …".
pub(super) fn check(version: &str) -> Result<(), String> {
    if parse(version).is_some_and(|it| it >= VERSION_MIN) {
        return Ok(());
    }
    let [major, minor, patch] = VERSION_MIN;
    Err(format!(
        "has version {version}, and Headwater needs {major}.{minor}.{patch} or newer, because older servers can lose \
         writes or let two of them succeed; please update it"
    ))
}

/// Reads `2.12.3`, also with a suffix such as `-RC.1`.
fn parse(version: &str) -> Option<[u32; 3]> {
    let numbers = version.split(['-', '+']).next()?;
    let mut parts = numbers.split('.').map(|it| it.parse().ok());
    let version = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_refused_with_the_version_that_is_needed() {
        for version in ["2.12.3", "2.12.10", "2.13.0", "2.15.1", "3.0.0", "2.12.3-RC.1"] {
            assert_eq!(check(version), Ok(()), "{version}");
        }
        for version in ["2.12.2", "2.9.10", "1.99.99", "", "2", "2.12", "2.12.3.4", "x.y.z"] {
            let error = check(version).unwrap_err();
            assert!(error.contains("needs 2.12.3 or newer"), "{error}");
        }
    }
}
