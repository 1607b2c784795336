variable "name" {
  description = "What the roles and the aliases of the keys are called: `NAME-archiver`, `alias/NAME-archive`, and so on."
  type        = string
  default     = "checkpoint-archiver"
  nullable    = false

  validation {
    condition     = can(regex("^[a-zA-Z][a-zA-Z0-9_-]{1,40}$", var.name))
    error_message = "name must be 2 to 41 letters, digits, '-' and '_', and begin with a letter: names of roles are made of it."
  }
}

variable "bucket" {
  description = "Name of the bucket that is made; it holds this one store and nothing else."
  type        = string
  nullable    = false

  validation {
    condition = (
      can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket))
      && !strcontains(var.bucket, "..")
      && !can(regex("^[0-9]+(\\.[0-9]+){3}$", var.bucket))
      && !can(regex("^(xn--|sthree-|amzn-s3-demo-)|(-s3alias|--ol-s3|--x-s3|\\.mrap|--table-s3)$", var.bucket))
    )
    error_message = "bucket must be a name that S3 takes for a general purpose bucket: 3 to 63 lower-case letters, digits, '-' and '.', no address, none of the prefixes and suffixes that AWS keeps for itself."
  }
}

variable "prefix" {
  description = "Where in the bucket the store lies, without a slash at either end; empty for the whole bucket."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.prefix == "" || can(regex("^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", var.prefix)) && length(var.prefix) <= 200
    error_message = "prefix must be words of letters, digits, '.', '_' and '-' with single slashes between them, such as \"team/archive\", and have no slash at its ends."
  }
}

variable "store_id" {
  description = "Id of the store, 32 hex digits as `archiver init` prints it; it then stands in `archiver.toml`. Null until the store was set up."
  type        = string
  default     = null

  validation {
    condition     = var.store_id == null || can(regex("^[0-9a-f]{32}$", var.store_id))
    error_message = "store_id must be 32 lower-case hex digits: what `archiver init` wrote as store.id."
  }
}

variable "application" {
  description = "Application in the encryption context of the archive key (`keys.application`); one for all who share runs."
  type        = string
  default     = "checkpoint-archiver"
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9._-]{1,64}$", var.application))
    error_message = "application must be 1 to 64 letters, digits, '.', '_' and '-', as keys.application."
  }
}

variable "break_glass_recipients" {
  description = "age recipients whose identities are kept offline: what opens the archive when KMS, the account or its permissions are gone. At least one."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.break_glass_recipients) > 0
    error_message = "break_glass_recipients needs at least one age recipient: with KMS as the only way in, whoever deletes the key or loses the account loses every run. `archiver keygen --into /media/stick` makes one."
  }

  validation {
    condition     = alltrue([for one in var.break_glass_recipients : can(regex("^age1[0-9a-z]{50}[0-9a-z]*$", one))])
    error_message = "break_glass_recipients must be age recipients (age1… or age1pq1…), never identities (AGE-SECRET-KEY-…)."
  }
}

variable "recipients" {
  description = "Other age recipients that everything is sealed to, besides the archive key and break_glass_recipients."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for one in var.recipients : can(regex("^age1[0-9a-z]{50}[0-9a-z]*$", one))])
    error_message = "recipients must be age recipients (age1… or age1pq1…), never identities (AGE-SECRET-KEY-…)."
  }

  validation {
    condition     = length(distinct([for one in concat(var.recipients, var.break_glass_recipients) : startswith(one, "age1pq1")])) <= 1
    error_message = "recipients and break_glass_recipients must all be post-quantum (age1pq1…) or none of them: whoever breaks the weaker one has the file."
  }
}

variable "principals" {
  description = "ARNs of the users and roles that may become each role. A role for which nobody is named, here or in `oidc`, is not made."
  type = object({
    archiver      = optional(list(string), [])
    runner        = optional(list(string), [])
    sweeper       = optional(list(string), [])
    restorer      = optional(list(string), [])
    administrator = optional(list(string), [])
  })
  default  = {}
  nullable = false

  validation {
    condition = alltrue([
      for one in flatten(values(var.principals)) : can(regex("^arn:aws[a-z-]*:(iam|sts)::[0-9]{12}:(root|(user|role|assumed-role)/[^*?]+)$", one))
    ])
    error_message = "principals must be ARNs of an account's users, roles or root (arn:aws:iam::111122223333:role/ci), without '*' and '?'."
  }

  validation {
    condition     = length(setintersection(var.principals.administrator, concat(var.principals.archiver, var.principals.runner))) == 0
    error_message = "principals: who archives must not also be the administrator, or a thief of those credentials can delete what they saved."
  }
}

variable "oidc" {
  description = "An OpenID Connect provider of the account (GitHub Actions, a Kubernetes cluster), and which of its subjects may become each role."
  type = object({
    provider_arn = string
    audience     = optional(string, "sts.amazonaws.com")
    subjects = object({
      archiver      = optional(list(string), [])
      runner        = optional(list(string), [])
      sweeper       = optional(list(string), [])
      restorer      = optional(list(string), [])
      administrator = optional(list(string), [])
    })
  })
  default = null

  validation {
    condition     = var.oidc == null || can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:oidc-provider/[^*?]+$", var.oidc.provider_arn))
    error_message = "oidc.provider_arn must be the ARN of an OpenID Connect provider (arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com)."
  }

  # `repo:*` is every repository of everybody: a pattern has to say whose it means, up to the end of that name.
  validation {
    condition = var.oidc == null || alltrue([
      for one in flatten(values(try(var.oidc.subjects, {}))) : can(regex("^([^*?]{3,}$|[^*?:/]+[:/][^*?:/]+[:/])", one))
    ])
    error_message = "oidc.subjects must name whose they are before a '*' or '?' (repo:example/agents:*, repo:example/*, system:serviceaccount:agents:*): with \"repo:*\" every customer of the provider becomes the role."
  }

  validation {
    condition = var.oidc == null || length(setintersection(
      try(var.oidc.subjects.administrator, []), concat(try(var.oidc.subjects.archiver, []), try(var.oidc.subjects.runner, []))
    )) == 0
    error_message = "oidc.subjects: who archives must not also be the administrator, or a thief of those credentials can delete what they saved."
  }
}

variable "tasks" {
  description = "Patterns over task ids, by role: which runs the archive key seals (archiver), seals and opens (runner) or opens (restorer) for it."
  type = object({
    archiver = optional(list(string), ["*"])
    runner   = optional(list(string), ["*"])
    restorer = optional(list(string), ["*"])
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for patterns in values(var.tasks) : length(patterns) > 0 && alltrue([for one in patterns : length(one) > 0])])
    error_message = "tasks needs at least one pattern for each role, none of them empty: [\"*\"] for all tasks."
  }
}

variable "sweeper_archives" {
  description = "Whether the sweeper may also create, as the archiver may: for one machine that archives finished runs and keeps their classes."
  type        = bool
  default     = false
  nullable    = false
}

variable "administrator_mfa" {
  description = "Whether the principals of the administrator need a session with MFA; subjects of `oidc` are not asked for it."
  type        = bool
  default     = true
  nullable    = false
}

variable "max_session_duration" {
  description = "Longest session of a role, in seconds."
  type        = number
  default     = 3600
  nullable    = false

  validation {
    condition     = var.max_session_duration >= 3600 && var.max_session_duration <= 43200 && floor(var.max_session_duration) == var.max_session_duration
    error_message = "max_session_duration must be whole seconds from 3600 (an hour) to 43200 (12 hours)."
  }
}

variable "permissions_boundary" {
  description = "ARN of a policy that bounds what the roles may; null for none. It has to allow what they need."
  type        = string
  default     = null

  validation {
    condition     = var.permissions_boundary == null || can(regex("^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/.+$", var.permissions_boundary))
    error_message = "permissions_boundary must be the ARN of an IAM policy."
  }
}

variable "allowed_regions" {
  description = "Regions that the roles may send requests to; empty for that of the provider alone."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for one in var.allowed_regions : can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]+$", one))])
    error_message = "allowed_regions must be names of regions, such as \"eu-central-1\"."
  }
}

variable "retention_days" {
  description = "Days by class (`intermediate`, `success`, `failure`, `live`, `record`) that are longer than the defaults of `retention.json`."
  type        = map(number)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for class in keys(var.retention_days) : contains(keys(local.retention.classes), class)])
    error_message = "retention_days knows the classes ${join(", ", keys(local.retention.classes))}; what is on hold never expires, and no rule is made for it."
  }

  validation {
    condition = alltrue([
      for class, days in var.retention_days : days >= try(local.retention.classes[class].days, 0) && floor(days) == days && days <= 36500
    ])
    error_message = "retention_days may only keep longer, in whole days: ${join(", ", [for class, rule in local.retention.classes : "${class} ${rule.days}"])} is what stored runs were promised. To have a run gone earlier use `archiver rm` or `archiver erase`."
  }
}

variable "object_lock" {
  description = "Object Lock for every new version: mode (GOVERNANCE or COMPLIANCE) and days. Null: none. It can be chosen only when the bucket is made."
  type = object({
    mode = string
    days = number
  })
  default = null

  validation {
    condition     = var.object_lock == null || contains(["GOVERNANCE", "COMPLIANCE"], try(var.object_lock.mode, ""))
    error_message = "object_lock.mode must be GOVERNANCE or COMPLIANCE."
  }

  validation {
    condition     = var.object_lock == null || try(var.object_lock.days >= 1 && var.object_lock.days <= 36500 && floor(var.object_lock.days) == var.object_lock.days, false)
    error_message = "object_lock.days must be whole days, from 1 to 36500."
  }
}

variable "key_deletion_days" {
  description = "Days between the order to delete a key and its end, in which it can be called back."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = var.key_deletion_days >= 7 && var.key_deletion_days <= 30 && floor(var.key_deletion_days) == var.key_deletion_days
    error_message = "key_deletion_days must be whole days from 7 to 30, as KMS takes them."
  }
}

variable "key_rotation_days" {
  description = "Days after which KMS gives the keys new material; what was sealed before still opens."
  type        = number
  default     = 365
  nullable    = false

  validation {
    condition     = var.key_rotation_days >= 90 && var.key_rotation_days <= 2560 && floor(var.key_rotation_days) == var.key_rotation_days
    error_message = "key_rotation_days must be whole days from 90 to 2560, as KMS takes them."
  }
}

variable "force_destroy" {
  description = "Whether `terraform destroy` may take a bucket away that holds runs. For trials only."
  type        = bool
  default     = false
  nullable    = false
}

variable "tags" {
  description = "Tags of the bucket, the keys and the roles."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "emulator_endpoint" {
  description = "For tests alone: address of an AWS emulator on this machine. The TLS statements, and conditions that no emulator knows, are then left out."
  type        = string
  default     = null

  validation {
    condition     = var.emulator_endpoint == null || can(regex("^http://(127\\.0\\.0\\.1|localhost|\\[::1\\])(:[0-9]+)?$", var.emulator_endpoint))
    error_message = "emulator_endpoint must be an http address of this machine (http://127.0.0.1:4566): what it leaves out is needed everywhere else."
  }
}
