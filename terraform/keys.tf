# Two keys. With the storage key S3 encrypts the disk: whoever may read an object gets it decrypted. With the archive key
# the program seals each object before it leaves the machine: only who may open its context sees anything.
#
# Who uses a key stands in the policy of the key alone. The account may administer it and not use it, so that no policy
# of a user or role elsewhere in the account adds a reader.

resource "aws_kms_key" "storage" {
  description             = "${var.name}: encryption of the bucket ${var.bucket} by S3"
  enable_key_rotation     = true
  rotation_period_in_days = var.key_rotation_days
  deletion_window_in_days = var.key_deletion_days
  tags                    = var.tags
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = concat([local.administers_key], local.storage_key_statements)
  })

  depends_on = [aws_iam_role.this] # KMS refuses a policy that names a role that is not there
}

resource "aws_kms_alias" "storage" {
  name          = "alias/${var.name}-storage"
  target_key_id = aws_kms_key.storage.key_id
}

resource "aws_kms_key" "archive" {
  description             = "${var.name}: envelopes of the runs in ${var.bucket}"
  enable_key_rotation     = true
  rotation_period_in_days = var.key_rotation_days
  deletion_window_in_days = var.key_deletion_days
  tags                    = var.tags
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = concat([local.administers_key], local.archive_key_statements)
  })

  depends_on = [aws_iam_role.this]
}

resource "aws_kms_alias" "archive" {
  name          = "alias/${var.name}-archive"
  target_key_id = aws_kms_key.archive.key_id
}

locals {
  # Without kms:CreateGrant, which would hand out the use that is left out here.
  administers_key = {
    Sid       = "AccountAdministers"
    Effect    = "Allow"
    Principal = { AWS = "arn:${local.partition}:iam::${local.account}:root" }
    Action = [
      "kms:CancelKeyDeletion", "kms:CreateAlias", "kms:DeleteAlias", "kms:DescribeKey", "kms:DisableKey", "kms:EnableKey",
      "kms:EnableKeyRotation", "kms:GetKeyPolicy", "kms:GetKeyRotationStatus", "kms:ListAliases", "kms:ListGrants",
      "kms:ListKeyPolicies", "kms:ListKeyRotations", "kms:ListResourceTags", "kms:PutKeyPolicy", "kms:RevokeGrant",
      "kms:RotateKeyOnDemand", "kms:ScheduleKeyDeletion", "kms:TagResource", "kms:UntagResource", "kms:UpdateAlias",
      "kms:UpdateKeyDescription",
    ]
    Resource = "*"
  }

  # S3 asks for these on behalf of who puts and gets. A multipart upload needs Decrypt too. With a bucket key the
  # context is the bucket's ARN, without one the object's.
  storage_key_statements = [
    for role in local.roles : {
      Sid       = "${title(role)}ThroughS3"
      Effect    = "Allow"
      Principal = { AWS = local.role_arns[role] }
      Action    = contains(local.creators, role) ? ["kms:Decrypt", "kms:GenerateDataKey"] : ["kms:Decrypt"]
      Resource  = "*"
      Condition = {
        StringEquals = { "kms:ViaService" = "s3.${local.region}.${data.aws_partition.current.dns_suffix}" }
        StringLike   = { "kms:EncryptionContext:aws:s3:arn" = [local.bucket_arn, "${local.bucket_arn}/*"] }
      }
    } if contains(local.trusted, role)
  ]

  creators = concat(["archiver", "runner", "administrator"], [for role in ["sweeper"] : role if var.sweeper_archives])

  # The kinds of objects, and the tasks, that each role seals and opens.
  probes  = ["archiver-init", "archiver-doctor"] # the tasks under which `init` and `doctor` try keys
  several = ["archiver-several"]                 # that of audit which concerns several runs
  sealing = ["record", "bundle", "effect"]
  sealed = merge(
    {
      archiver      = { objects = local.sealing, tasks = concat(var.tasks.archiver, local.probes) }
      runner        = { objects = local.sealing, tasks = concat(var.tasks.runner, local.probes) }
      administrator = { objects = concat(local.sealing, ["note", "audit"]), tasks = ["*"] }
    },
    { for role in ["sweeper"] : role => { objects = local.sealing, tasks = concat(var.tasks.archiver, local.probes) } if var.sweeper_archives },
  )
  opened = {
    runner        = { objects = ["record", "bundle", "effect", "note"], tasks = concat(var.tasks.runner, local.probes) }
    sweeper       = { objects = ["record", "note"], tasks = ["*"] }
    restorer      = { objects = ["record", "bundle", "effect", "note"], tasks = concat(var.tasks.restorer, local.probes) }
    administrator = { objects = ["record", "bundle", "effect", "note", "audit"], tasks = ["*"] }
  }

  archive_key_statements = [
    for one in concat(
      [for role, what in local.sealed : { sid = "${title(role)}Seals", role = role, action = "kms:GenerateDataKey", objects = what.objects, tasks = what.tasks }],
      [{ sid = "RunnerSealsAudit", role = "runner", action = "kms:GenerateDataKey", objects = ["audit"], tasks = concat(var.tasks.runner, local.probes, local.several) }],
      [for role, what in local.opened : { sid = "${title(role)}Opens", role = role, action = "kms:Decrypt", objects = what.objects, tasks = what.tasks }],
    ) :
    { for key, value in {
      Sid       = one.sid
      Effect    = "Allow"
      Principal = { AWS = local.role_arns[one.role] }
      Action    = one.action
      Resource  = "*"
      # An emulator that does not know the keys of the context would deny everything.
      Condition = local.emulated ? null : {
        StringEquals = {
          "kms:EncryptionContext:application" = var.application
          "kms:EncryptionContext:object"      = one.objects
        }
        StringLike = { "kms:EncryptionContext:task" = one.tasks }
      }
    } : key => value if value != null }
    if contains(local.trusted, one.role)
  ]
}
