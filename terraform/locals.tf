data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  # Written by the program from its one definition of classes and days.
  retention = jsondecode(file("${path.module}/retention.json"))
  days      = { for class, rule in local.retention.classes : class => max(rule.days, lookup(var.retention_days, class, 0)) }

  partition = data.aws_partition.current.partition
  account   = data.aws_caller_identity.current.account_id
  region    = data.aws_region.current.id # both 5.x and 6.x of the provider have it

  # ARNs are put together instead of asked for, so that a plan shows the policies before anything exists.
  bucket_arn = "arn:${local.partition}:s3:::${var.bucket}"
  keys       = var.prefix == "" ? "" : "${var.prefix}/" # what the keys of all objects begin with
  objects    = "${local.bucket_arn}/${local.keys}"

  roles = ["archiver", "runner", "sweeper", "restorer", "administrator"]
  subjects = {
    for role in local.roles : role => var.oidc == null ? tolist([]) : tolist(var.oidc.subjects[role])
  }
  trusted   = toset([for role in local.roles : role if length(var.principals[role]) + length(local.subjects[role]) > 0])
  role_arns = { for role in local.roles : role => "arn:${local.partition}:iam::${local.account}:role/${var.name}-${role}" }

  regions  = length(var.allowed_regions) > 0 ? var.allowed_regions : [local.region]
  emulated = var.emulator_endpoint != null
}
