//! The configuration: a directory with one file per key, such as a mounted ConfigMap. The keys are
//! upstream's.

mod fields;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bindery_model::{AccessMode, VolumeMode};
use serde_json::Value;

use crate::pattern::Pattern;
use fields::Fields;

/// Upstream's default cleaner for block devices.
pub const DEFAULT_CLEANER: &str = "/scripts/quick_reset.sh";

/// How long a cleaner command may run, unless the class says otherwise: long enough to overwrite a
/// disk of 20 TB several times.
pub const CLEANER_TIMEOUT_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How often upstream's `shred.sh` overwrites a device unless told otherwise.
const SHRED_PASSES_DEFAULT: u32 = 3;

/// The maximum number of passes.
const SHRED_PASSES_MAX: u32 = 100;

/// The keys of a class.
const CLASS_KEYS: [&str; 10] = [
    "hostDir",
    "mountDir",
    CLEANER_KEY,
    "blockCleanerTimeout",
    "volumeMode",
    "accessMode",
    "fsType",
    "namePattern",
    "selector",
    "onlyEmpty",
];
const CLEANER_KEY: &str = "blockCleanerCommand";

/// Upstream's default for `minResyncPeriod`.
const RESYNC_DEFAULT: Duration = Duration::from_secs(300);

/// The configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The classes to discover disks for, by name.
    pub classes: BTreeMap<String, ClassConfig>,
    /// The node's labels to copy to volumes.
    pub node_labels: Vec<String>,
    /// Labels for all volumes; these take precedence.
    pub labels: BTreeMap<String, String>,
    /// The minimum resync period.
    pub resync_min: Duration,
    /// Leave the node's UID out of the provisioner's name.
    pub use_node_name_only: bool,
    /// Make the node the owner of its volumes.
    pub set_owner_reference: bool,
    /// The taint to remove from the node once discovery has succeeded.
    pub taint: Option<String>,
    /// Files with unknown names, which are ignored.
    pub unknown: Vec<UnknownFile>,
}

/// A file with an unknown name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFile {
    /// Its name.
    pub name: String,
    /// The known name that was probably meant.
    pub meant: Option<String>,
}

/// The configuration of one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassConfig {
    /// The directory on the node; used in volumes.
    pub host_dir: String,
    /// The directory as mounted in this process.
    pub mount_dir: String,
    /// How to clean block devices.
    pub cleaner: Cleaner,
    /// How long a cleaner command may run.
    pub cleaner_timeout: Duration,
    /// The volume mode of the volumes.
    pub volume_mode: VolumeMode,
    /// The access mode of the volumes.
    pub access_mode: AccessMode,
    /// The filesystem type for formatting a device.
    pub fs_type: Option<String>,
    /// Patterns for the names of entries.
    pub patterns: Vec<Pattern>,
    /// Additional node selector terms, as JSON; they are ORed.
    pub selector: Vec<Value>,
    /// Create volumes for empty disks only.
    pub only_empty: bool,
}

/// How to clean a block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cleaner {
    /// With a built-in method.
    Builtin(Wipe),
    /// With a command, which gets a path of the device in `LOCAL_PV_BLKDEVICE`.
    Command(Vec<String>),
}

/// A built-in cleaning method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wipe {
    /// Overwrites the signatures of file systems, partition tables and volume managers. Fast, but
    /// leaves data on the disk.
    Quick,
    /// Overwrites every byte with zero.
    Zero,
    /// Discards all blocks, so that they read as zero. Fast, but fails if the device does not
    /// support it.
    Discard,
    /// Overwrites every byte with random data, this often, and then with zero.
    Shred(u32),
}

impl Wipe {
    const ALL: [Wipe; 4] = [Wipe::Quick, Wipe::Zero, Wipe::Discard, Wipe::Shred(SHRED_PASSES_DEFAULT)];

    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Wipe::Quick => "builtin:quick",
            Wipe::Zero => "builtin:zero",
            Wipe::Discard => "builtin:discard",
            Wipe::Shred(_) => "builtin:shred",
        }
    }

    fn parse(word: &str) -> Option<Wipe> {
        Wipe::ALL.into_iter().find(|wipe| wipe.as_str() == word)
    }
}

/// A configuration error, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub file: String,
    /// The class, if the error is in one.
    pub class: Option<String>,
    /// The key in the class.
    pub key: Option<String>,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(class) = &self.class {
            write!(f, "class {class:?}: ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Parses a configuration: the contents of its files, by name.
    pub fn parse(files: &BTreeMap<String, String>) -> Result<Config, ConfigError> {
        let mut all = Fields::of_files(files)?;
        if all.flag("useAlphaAPI")? {
            return Err(all.error(
                "useAlphaAPI",
                "the alpha node affinity annotation is not supported: remove this key, or set it to false",
            ));
        }
        if all.flag("useJobForCleaning")? {
            return Err(all.error(
                "useJobForCleaning",
                "Jobs are not supported: cleaning always runs in this process. Remove this key, or set it to false",
            ));
        }
        all.skip(&["jobTolerations", "kubeConfig", "namespace"]);
        let remove_taint = all.flag("removeNodeNotReadyTaint")?;
        let taint = all.text("provisionerNotReadyNodeTaintKey")?.filter(|key| !key.is_empty());
        if remove_taint && taint.is_none() {
            return Err(
                all.error("provisionerNotReadyNodeTaintKey", "removeNodeNotReadyTaint requires the taint's key")
            );
        }
        let mut config = Config {
            classes: classes(&mut all)?,
            node_labels: all.texts("nodeLabelsForPV")?.unwrap_or_default(),
            labels: all.labels("labelsForPV")?,
            resync_min: all.duration("minResyncPeriod")?.filter(|period| !period.is_zero()).unwrap_or(RESYNC_DEFAULT),
            use_node_name_only: all.flag("useNodeNameOnly")?,
            set_owner_reference: all.flag("setPVOwnerRef")?,
            taint: taint.filter(|_| remove_taint),
            unknown: Vec::new(),
        };
        config.unknown.extend(all.unknown());
        Ok(config)
    }

    /// Replaces upstream's scripts by built-in methods if they do not exist on this machine, and
    /// rejects other programs that do not exist: otherwise every cleaning would fail.
    pub fn with_existing_cleaners(mut self, exists: impl Fn(&str) -> bool) -> Result<Config, ConfigError> {
        for (name, class) in &mut self.classes {
            let Cleaner::Command(words) = &class.cleaner else { continue };
            let [program, arguments @ ..] = words.as_slice() else { continue };
            if exists(program) {
                continue;
            }
            let wipe = builtin(program, arguments).map_err(|problem| ConfigError {
                file: "storageClassMap".into(),
                class: Some(name.clone()),
                key: Some(CLEANER_KEY.into()),
                problem,
            })?;
            class.cleaner = Cleaner::Builtin(wipe);
        }
        Ok(self)
    }
}

/// The built-in method that replaces a script of upstream.
fn builtin(program: &str, arguments: &[String]) -> Result<Wipe, String> {
    match program {
        DEFAULT_CLEANER => Ok(Wipe::Quick),
        "/scripts/dd_zero.sh" => Ok(Wipe::Zero),
        "/scripts/blkdiscard.sh" => Ok(Wipe::Discard),
        "/scripts/shred.sh" => {
            let passes = arguments.first().map_or(Some(SHRED_PASSES_DEFAULT), |passes| passes.parse().ok());
            passes
                .filter(|passes| (1..=SHRED_PASSES_MAX).contains(passes))
                .map(Wipe::Shred)
                .ok_or_else(|| format!("{program} takes the number of passes, 1 to {SHRED_PASSES_MAX}"))
        }
        "/scripts/fsclean.sh" => Err(format!(
            "{program} cleans file systems, for which no command is needed: remove this key, or use one of {}",
            builtin_names()
        )),
        _ => Err(format!(
            "{program} does not exist or is not executable here: add it to the image or mount it, or use one of {}",
            builtin_names()
        )),
    }
}

fn builtin_names() -> String {
    Wipe::ALL.map(Wipe::as_str).join(", ")
}

fn classes(all: &mut Fields) -> Result<BTreeMap<String, ClassConfig>, ConfigError> {
    let of_class = all.maps("storageClassMap")?;
    let classes: BTreeMap<String, ClassConfig> =
        of_class.into_iter().map(|(name, fields)| Ok((name, class(fields)?))).collect::<Result<_, ConfigError>>()?;
    for (name, class) in &classes {
        for (other, config) in classes.range::<String, _>(..name) {
            let key = match () {
                () if config.host_dir == class.host_dir => "hostDir",
                () if config.mount_dir == class.mount_dir => "mountDir",
                () => continue,
            };
            let problem = format!("class {other:?} has the same directory; each disk would get two volumes");
            return Err(all.error_of("storageClassMap", name, key, &problem));
        }
    }
    Ok(classes)
}

fn class(mut fields: Fields) -> Result<ClassConfig, ConfigError> {
    // First, because a misspelt key is the reason why a required one is missing.
    fields.only(&CLASS_KEYS)?;
    Ok(ClassConfig {
        host_dir: fields.directory("hostDir")?,
        mount_dir: fields.directory("mountDir")?,
        cleaner: cleaner(&mut fields)?,
        cleaner_timeout: cleaner_timeout(&mut fields)?,
        volume_mode: fields
            .word("volumeMode", "Filesystem or Block", |word| {
                [VolumeMode::Filesystem, VolumeMode::Block].into_iter().find(|mode| mode.as_str() == word)
            })?
            .unwrap_or_default(),
        access_mode: fields
            .word("accessMode", "one of Kubernetes' access modes, such as ReadWriteOnce", AccessMode::parse)?
            .unwrap_or(AccessMode::ReadWriteOnce),
        fs_type: fields.text("fsType")?.filter(|text| !text.is_empty()),
        patterns: patterns(&mut fields)?,
        selector: fields.objects("selector")?,
        only_empty: fields.flag("onlyEmpty")?,
    })
}

fn cleaner_timeout(fields: &mut Fields) -> Result<Duration, ConfigError> {
    const KEY: &str = "blockCleanerTimeout";
    match fields.duration(KEY)? {
        None => Ok(CLEANER_TIMEOUT_DEFAULT),
        Some(Duration::ZERO) => Err(fields.error(KEY, "must not be 0: every cleaning would fail")),
        Some(timeout) => Ok(timeout),
    }
}

fn cleaner(fields: &mut Fields) -> Result<Cleaner, ConfigError> {
    let Some(words) = fields.texts(CLEANER_KEY)? else {
        return Ok(Cleaner::Command(vec![DEFAULT_CLEANER.to_owned()]));
    };
    let Some(first) = words.first().filter(|first| !first.is_empty()) else {
        return Err(fields.error(CLEANER_KEY, "must not be empty; remove it to use the default"));
    };
    if !first.starts_with("builtin:") {
        return Ok(Cleaner::Command(words));
    }
    match Wipe::parse(first).filter(|_| words.len() == 1) {
        Some(wipe) => Ok(Cleaner::Builtin(wipe)),
        None => {
            let problem =
                format!("{words:?} is not a built-in cleaner (known, without arguments: {})", builtin_names());
            Err(fields.error(CLEANER_KEY, &problem))
        }
    }
}

fn patterns(fields: &mut Fields) -> Result<Vec<Pattern>, ConfigError> {
    const KEY: &str = "namePattern";
    let text = fields.text(KEY)?.filter(|text| !text.is_empty()).unwrap_or_else(|| "*".to_owned());
    text.split(',').map(|pattern| Pattern::parse(pattern).map_err(|problem| fields.error(KEY, &problem))).collect()
}
