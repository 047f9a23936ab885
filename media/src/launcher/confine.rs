//! Gives up rights of the current process, for itself and everything that it starts.

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use super::rules::{FileAccess, rules};
use super::{Confinement, ProgramLimits};

/// The version of Landlock whose rights are used, as far as the kernel has them.
const ABI_MAX: ABI = ABI::V9;
/// Rights of root that a program keeps: opening files of other users.
const KEPT_CAPABILITIES: CapabilitySet = CapabilitySet::DAC_OVERRIDE;

/// Error while giving up rights. The program must not start then.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfineError {
    #[error("{0}")]
    System(#[from] rustix::io::Errno),
    #[error("{0}")]
    Files(#[from] RulesetError),
}

/// Returns whether this kernel can restrict access to files. Without it, programs can read and write whatever the
/// gateway can.
pub fn can_restrict_files() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

/// Restricts the current thread, which then executes the program.
pub(super) fn confine(confinement: &Confinement) -> Result<(), ConfineError> {
    set_no_new_privs(true)?;
    drop_capabilities()?;
    limit(&confinement.limits)?;
    restrict_files(confinement)?;
    Ok(())
}

/// Takes the rights of root away. Without rights, nothing happens.
fn drop_capabilities() -> rustix::io::Result<()> {
    let mut sets = capabilities(None)?;
    if sets.permitted.is_empty() {
        return Ok(());
    }
    // Limits what root gets at the next exec.
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        if !KEPT_CAPABILITIES.contains(one) && remove_capability_from_bounding_set(one).is_err() {
            // Beyond the last one, or we may not change the set, so that it is limited already.
            break;
        }
    }
    for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
        *set &= KEPT_CAPABILITIES;
    }
    set_capabilities(None, sets)
}

fn limit(limits: &ProgramLimits) -> rustix::io::Result<()> {
    // A core file would contain what the program read, and may be as large as its memory.
    set_limit(Resource::Core, Some(0))?;
    let set = |resource, limit: u64| set_limit(resource, (limit > 0).then_some(limit));
    set(Resource::Data, limits.memory_bytes_max)?;
    set(Resource::Fsize, limits.file_bytes_max)?;
    set(Resource::Nofile, limits.open_files_max)?;
    set(Resource::Nproc, limits.processes_max)
}

/// Lowers both limits; a lower hard limit stays.
fn set_limit(resource: Resource, limit: Option<u64>) -> rustix::io::Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    let limit = getrlimit(resource).maximum.map_or(limit, |it| it.min(limit));
    setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
}

/// Restricts access to files, as far as the kernel can.
fn restrict_files(confinement: &Confinement) -> Result<(), RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI_MAX))?
        // A program must not kill the gateway or the watchdog.
        .scope(Scope::Signal)?
        .create()?;
    for rule in rules(confinement) {
        // What has vanished needs no rule.
        if let Ok(path) = PathFd::new(&rule.path) {
            ruleset = ruleset.add_rule(PathBeneath::new(path, rights(rule.access)))?;
        }
    }
    ruleset.restrict_self()?;
    Ok(())
}

fn rights(access: FileAccess) -> BitFlags<AccessFs> {
    match access {
        FileAccess::Read => AccessFs::from_read(ABI_MAX) | AccessFs::ResolveUnix,
        FileAccess::Write => AccessFs::from_all(ABI_MAX) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
    }
}
