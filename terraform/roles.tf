resource "aws_iam_role" "this" {
  for_each = local.trusted

  name                 = "${var.name}-${each.key}"
  description          = "${local.purposes[each.key]} (${var.bucket})"
  max_session_duration = var.max_session_duration
  permissions_boundary = var.permissions_boundary
  tags                 = var.tags
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [for arns in [var.principals[each.key]] : { for key, value in {
        Sid       = "Principals"
        Effect    = "Allow"
        Principal = { AWS = arns }
        Action    = "sts:AssumeRole"
        Condition = each.key == "administrator" && var.administrator_mfa ? { Bool = { "aws:MultiFactorAuthPresent" = "true" } } : null
      } : key => value if value != null } if length(arns) > 0],
      [for subjects in [local.subjects[each.key]] : {
        Sid       = "Subjects"
        Effect    = "Allow"
        Principal = { Federated = var.oidc.provider_arn }
        Action    = "sts:AssumeRoleWithWebIdentity"
        Condition = {
          StringEquals = { "${local.issuer}:aud" = var.oidc.audience }
          StringLike   = { "${local.issuer}:sub" = subjects }
        }
      } if length(subjects) > 0],
    )
  })
}

resource "aws_iam_role_policy" "this" {
  for_each = local.trusted

  name = "store"
  role = aws_iam_role.this[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      for one in concat(local.role_statements[each.key], [local.looks, local.other_regions]) :
      { for key, value in one : key => value if value != null }
    ]
  })
}

locals {
  issuer = var.oidc == null ? "" : element(split(":oidc-provider/", var.oidc.provider_arn), 1)

  purposes = {
    archiver      = "Creates archived runs and reads none"
    runner        = "Saves its own runs and reads them back"
    sweeper       = "Changes the classes of archived runs"
    restorer      = "Reads and opens archived runs"
    administrator = "Holds, removes and rekeys archived runs"
  }
}
