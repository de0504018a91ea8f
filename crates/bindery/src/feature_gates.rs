//! The `--feature-gates` flag, as Kubernetes components parse it.

/// Parses `NAME=BOOL` pairs and passes each to `set`. Names outside `known` are an error.
pub fn parse(gates: &[String], known: &[&str], mut set: impl FnMut(&str, bool)) -> Result<(), String> {
    for gate in gates {
        let (name, value) =
            gate.split_once('=').ok_or_else(|| format!("missing bool value for feature gate {gate:?}"))?;
        let value = value.trim().parse::<bool>();
        let value = value.map_err(|_| format!("invalid value of {name}: use true or false, not {gate:?}"))?;
        let name = name.trim();
        if !known.contains(&name) {
            return Err(format!("unrecognized feature gate: {name} (known: {})", known.join(", ")));
        }
        set(name, value);
    }
    Ok(())
}
